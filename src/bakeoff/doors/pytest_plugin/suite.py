"""Write an eval: `eval_suite` over a test function, or `describe_eval` with a task."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeVar, get_args

from bakeoff.errors import UsageError
from bakeoff.plan import Gate, PassRule
from bakeoff.scorers.adapters import as_scorer

Data = Iterable[Mapping[str, Any]] | Callable[[], Any] | str | PathLike[str]
Function = TypeVar("Function", bound=Callable[..., Any])

CASE = "case"
"""The parameter that gives a test function its case. Every other parameter is a fixture or a parameter of pytest's."""

NO_LIMIT = 10.0**9
"""The seconds of `timeout=None`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a suite is run, and when its cases pass."""

    rule: PassRule
    rounds: int | None = None  # None: as the command line says
    timeout: float = 60.0
    concurrency: int | None = None  # None: as the command line says
    isolate: bool = False


def settings_of(
    name: str,
    *,
    threshold: float | None,
    gate: Gate,
    rounds: int | None,
    timeout: float | None,
    concurrency: int | None = None,
    null_as_zero: bool = False,
    isolate: bool = False,
) -> Settings:
    """Return the settings of the suite with this name, or raise one UsageError with all that is wrong."""
    problems = [
        problem
        for wrong, problem in (
            (not _is_share(threshold), f"threshold {threshold!r} is not between 0 and 1, or None"),
            (gate not in get_args(Gate), f"gate {gate!r} is not one of {', '.join(get_args(Gate))}"),
            (not _is_count(rounds), f"rounds {rounds!r} is not a number from 1 up"),
            (not _is_count(concurrency), f"concurrency {concurrency!r} is not a number from 1 up"),
            (not _is_time(timeout), f"timeout {timeout!r} is not a number of seconds above 0, or None"),
        )
        if wrong
    ]
    if problems:
        raise UsageError(f"{name}: {'; '.join(problems)}")
    rule = PassRule(threshold=threshold, gate=gate, null_as_zero=null_as_zero)
    return Settings(rule, rounds, NO_LIMIT if timeout is None else float(timeout), concurrency, isolate)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= 1)


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def _is_time(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 < value <= NO_LIMIT)


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """A suite as its author described it."""

    name: str
    data: Data
    function: Callable[..., Any]
    given_a_case: bool  # a test function takes a case, a task takes the input
    scorers: tuple[Callable[..., Any], ...]
    settings: Settings
    skip_if: bool | Callable[[], Any] = False


class EvalSuite:
    """The object that pytest finds under the name of a suite. Marks and fixtures work on it as on a function."""

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
        """Call the function itself."""
        return self._bakeoff.function(*arguments, **named)

    def __set_name__(self, owner: type, name: str) -> None:
        unittest = sys.modules.get("unittest")
        if unittest is not None and issubclass(owner, unittest.TestCase):
            raise UsageError(
                f"{owner.__name__}.{name}: a unittest.TestCase cannot hold an eval suite: "
                "use a plain class or a function"
            )


def _for_pytest(described: Described) -> inspect.Signature:
    """Return the parameters that pytest has to fill: all but the case."""
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
    gate: Gate = "mean",
    rounds: int | None = None,
    timeout: float | None = 60.0,
    concurrency: int | None = None,
    skip_if: bool | Callable[[], Any] = False,
    null_as_zero: bool = False,
    isolate: bool = False,
) -> Callable[[Callable[..., Any]], EvalSuite]:
    """Make a test function an eval: one test for each row of `data`, whose return value is scored.

    Args:
        data: the rows: a list, an iterable, a function that returns one, or the path of a data file.
        scorers: at least one scorer of the return value.
        threshold: the score that a case must reach; None records without failing.
        gate: how the rounds of a case become one score: their `mean`, `pass@k` or `pass^k`.
        rounds: how often the function is called for a case; None takes `--eval-rounds`, or 1.
        timeout: seconds for the function, and for each scorer; None for no limit.
        concurrency: cases at a time; None takes `--eval-concurrency`, or 10.
        skip_if: a value, or a function called before data is loaded; a text is the reason.
        null_as_zero: count a scorer that returns None as 0 instead of leaving it out.
        isolate: call the function in a process of its own, which is killed when its time is up.
    """

    def decorate(function: Callable[..., Any]) -> EvalSuite:
        if isinstance(function, EvalSuite) or not callable(function):
            raise UsageError(f"eval_suite decorates a test function, not {function!r}")
        name = str(getattr(function, "__name__", "eval"))
        settings = settings_of(
            name,
            threshold=threshold,
            gate=gate,
            rounds=rounds,
            timeout=timeout,
            concurrency=concurrency,
            null_as_zero=null_as_zero,
            isolate=isolate,
        )
        return EvalSuite(Described(name, data, function, True, check_scorers(name, scorers), settings, skip_if))

    return decorate


def describe_eval(
    name: str,
    *,
    data: Data,
    task: Callable[..., Any],
    scorers: Iterable[Callable[..., Any]],
    threshold: float | None = 1.0,
    gate: Gate = "mean",
    rounds: int | None = None,
    timeout: float | None = 60.0,
    concurrency: int | None = None,
    skip_if: bool | Callable[[], Any] = False,
    null_as_zero: bool = False,
    isolate: bool = False,
) -> EvalSuite:
    """Make an eval of a task, a function of the application that takes an input and returns an output.

    pytest collects it under a name that a test function could have: `test_sums = describe_eval(…)`.

    Args:
        name: the name of the suite in reports.
        task: the function; it also gets what its other parameters name of the row.
        data, scorers, threshold, gate, rounds, timeout, concurrency, skip_if, null_as_zero, isolate:
            as for `eval_suite`.
    """
    if not callable(task):
        raise UsageError(f"{name}: task {task!r} cannot be called")
    settings = settings_of(
        name,
        threshold=threshold,
        gate=gate,
        rounds=rounds,
        timeout=timeout,
        concurrency=concurrency,
        null_as_zero=null_as_zero,
        isolate=isolate,
    )
    return EvalSuite(Described(name, data, task, False, check_scorers(name, scorers), settings, skip_if))


def check_scorers(suite: str, given: Any) -> tuple[Callable[..., Any], ...]:
    """Return the scorers as callables, or raise a UsageError that names the suite."""
    scorers = tuple(given) if isinstance(given, Iterable) else (given,)
    if not scorers:
        raise UsageError(f"{suite}: `scorers` is empty, so no output could be scored: add a scorer")
    try:
        return tuple(as_scorer(scorer) for scorer in scorers)
    except UsageError as error:
        raise UsageError(f"{suite}: {error}") from error
