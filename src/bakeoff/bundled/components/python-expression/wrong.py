import math
import re


class ExpressionError(ValueError):
    def __init__(self, message, position=0):
        super().__init__(message)
        self.position = position


FUNCTIONS = {"abs": abs, "sqrt": math.sqrt, "min": min, "max": max}


def evaluate(text, variables=None):
    names = {**FUNCTIONS, **(variables or {})}
    bad = re.search(r"[^\w\s.+\-*/%^(),]", text)
    if bad:
        raise ExpressionError("bad character", bad.start())
    try:
        return eval(text.strip().replace("^", "**"), {"__builtins__": {}}, names)  # noqa: S307
    except SyntaxError as error:
        raise ExpressionError(str(error), (error.offset or 1) - 1) from None
    except (ArithmeticError, NameError, TypeError, ValueError) as error:
        raise ExpressionError(str(error)) from None
