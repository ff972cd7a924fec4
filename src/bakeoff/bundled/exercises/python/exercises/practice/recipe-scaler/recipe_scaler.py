from fractions import Fraction


def read_quantity(text: str) -> Fraction:
    raise NotImplementedError


def write_quantity(quantity: Fraction) -> str:
    raise NotImplementedError


def scale(line: str, factor: Fraction | int) -> str:
    raise NotImplementedError


def scale_recipe(text: str, servings: int, wanted: int) -> str:
    raise NotImplementedError
