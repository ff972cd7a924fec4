"""What an eval's author writes: `eval_suite` over a test function, or `describe_eval` with a task."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeVar

from bakeoff.doors.pytest_plugin.settings import Settings, settings_of
from bakeoff.errors import UsageError
from bakeoff.scorers.adapters import as_scorer

Data = Iterable[Mapping[str, Any]] | Callable[[], Any] | str | PathLike[str]
Function = TypeVar("Function", bound=Callable[..., Any])

CASE = "case"
"""The parameter that a test function is given its case by; every other one is a fixture or a parameter of pytest's."""


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """A suite as its author described it."""

    name: str
    data: Data
    function: Callable[..., Any]
    given_a_case: bool  # a test function; a task is given the row itself
    scorers: tuple[Callable[..., Any], ...]
    settings: Settings
    skip_if: bool | Callable[[], Any] = False


class EvalSuite:
    """What pytest finds under the name of a suite. It looks like a function, so that marks and fixtures work on it."""

    def __init__(self, described: Described) -> None:
        # pytest takes the names in a function's __dict__ for keywords of -k: as few as possible, and private.
        self._bakeoff = described
        function = described.function
        self.__name__ = str(getattr(function, "__name__", described.name))
        self.__qualname__ = str(getattr(function, "__qualname__", self.__name__))
        self.__module__ = str(getattr(function, "__module__", __name__))
        self.__doc__ = getattr(function, "__doc__", None)
        self.__signature__ = _for_pytest(described)
        if marks := getattr(function, "pytestmark", None):
            self.pytestmark = list(marks)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function itself, for whoever wants to call it."""
        return self._bakeoff.function(*arguments, **named)

    def __set_name__(self, owner: type, name: str) -> None:
        unittest = sys.modules.get("unittest")
        if unittest is not None and issubclass(owner, unittest.TestCase):
            raise UsageError(
                f"{owner.__name__}.{name}: a unittest.TestCase cannot hold an eval suite: "
                "use a plain class or a function"
            )


def _for_pytest(described: Described) -> inspect.Signature:
    """What pytest has to provide: everything but the case."""
    if not described.given_a_case:
        return inspect.Signature()
    parameters = inspect.signature(described.function).parameters
    if CASE not in parameters:
        raise UsageError(
            f"{described.name}: a function under `eval_suite` is given its case as {CASE!r}: add that parameter"
        )
    return inspect.Signature([parameter for name, parameter in parameters.items() if name != CASE])


def eval_suite(
    *,
    data: Data,
    scorers: Iterable[Callable[..., Any]],
    threshold: float | None = 1.0,
    gate: str = "mean",
    rounds: int | None = None,
    timeout: float | None = 60.0,
    concurrency: int | None = None,
    skip_if: bool | Callable[[], Any] = False,
    null_as_zero: bool = False,
    isolate: bool = False,
) -> Callable[[Callable[..., Any]], EvalSuite]:
    """Make a test function an eval: one test for each row of `data`; what the function returns is scored."""

    def decorate(function: Callable[..., Any]) -> EvalSuite:
        if isinstance(function, EvalSuite) or not callable(function):
            raise UsageError(f"eval_suite decorates a test function, not {function!r}")
        name = str(getattr(function, "__name__", "eval"))
        settings = settings_of(name, threshold, gate, rounds, timeout, concurrency, null_as_zero, isolate)
        return EvalSuite(Described(name, data, function, True, check_scorers(name, scorers), settings, skip_if))

    return decorate


def describe_eval(
    name: str,
    *,
    data: Data,
    task: Callable[..., Any],
    scorers: Iterable[Callable[..., Any]],
    threshold: float | None = 1.0,
    gate: str = "mean",
    rounds: int | None = None,
    timeout: float | None = 60.0,
    concurrency: int | None = None,
    skip_if: bool | Callable[[], Any] = False,
    null_as_zero: bool = False,
    isolate: bool = False,
) -> EvalSuite:
    """A suite around a task that is given `input` and whatever else of the row it has parameters for.

    pytest collects it where it is bound to a name that a test function could have: `test_sums = describe_eval(…)`.
    """
    if not callable(task):
        raise UsageError(f"{name}: task {task!r} cannot be called")
    settings = settings_of(name, threshold, gate, rounds, timeout, concurrency, null_as_zero, isolate)
    return EvalSuite(Described(name, data, task, False, check_scorers(name, scorers), settings, skip_if))


def check_scorers(suite: str, given: Any) -> tuple[Callable[..., Any], ...]:
    scorers = tuple(given) if isinstance(given, Iterable) else (given,)
    if not scorers:
        raise UsageError(f"{suite}: no scorer was given: nothing could be said of the output; add one to `scorers`")
    try:
        return tuple(as_scorer(scorer) for scorer in scorers)
    except UsageError as error:
        raise UsageError(f"{suite}: {error}") from error
