"""Define an eval: `eval_suite` over a test function, or `describe_eval` with a task."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from os import PathLike
from typing import Any, Required, TypedDict, Unpack, get_args

from bakeoff._kernel.json import is_number
from bakeoff.errors import UsageError
from bakeoff.plan import Gate, PassRule
from bakeoff.scorers.adapters import ScorerLike, as_scorer

Data = Iterable[Mapping[str, Any]] | Callable[[], Any] | str | PathLike[str]

CASE = "case"
"""The parameter that gives a test function its case. Every other parameter is a fixture or a parameter of pytest's."""

NO_LIMIT = 10.0**9
"""The number of seconds that `timeout=None` stands for."""


_OF_THE_RULE = ("threshold", "gate", "null_as_zero")  # options that say when a case passes


class SettingOptions(TypedDict, total=False):
    """The options for how a suite runs and when its cases pass. `eval_suite` describes them."""

    threshold: float | None
    gate: Gate
    rounds: int | None
    timeout: float | None
    concurrency: int | None
    null_as_zero: bool
    retries: int
    before_case: Callable[..., Any] | None
    after_case: Callable[..., Any] | None


class SuiteOptions(SettingOptions, total=False):
    """The options of `eval_suite` and `describe_eval`."""

    data: Required[Data]
    scorers: Required[Iterable[ScorerLike]]
    skip_if: bool | Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a suite: how it is run, and when its cases pass."""

    rule: PassRule
    rounds: int | None = None  # None: as the command line says
    timeout: float = 60.0
    concurrency: int | None = None  # None: as the command line says
    retries: int = 2  # of errors that providers and the network cause
    before_case: Callable[..., Any] | None = None
    after_case: Callable[..., Any] | None = None


def _is_number(value: Any, least: float, most: float) -> bool:
    return value is None or (is_number(value) and least <= value <= most)


def _is_count(value: Any) -> bool:
    return _is_number(value, 1, inf) and not isinstance(value, float)


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "threshold": (lambda value: _is_number(value, 0, 1), "is not between 0 and 1, or None"),
    "gate": (lambda value: value in get_args(Gate), f"is not one of {', '.join(get_args(Gate))}"),
    "rounds": (_is_count, "is not a number from 1 up"),
    "retries": (lambda value: value == 0 or _is_count(value), "is not a number from 0 up"),
    "before_case": (lambda value: value is None or callable(value), "cannot be called"),
    "after_case": (lambda value: value is None or callable(value), "cannot be called"),
    "concurrency": (_is_count, "is not a number from 1 up"),
    "timeout": (
        lambda value: value != 0 and _is_number(value, 0, NO_LIMIT),
        "is not a number of seconds above 0, or None",
    ),
}
"""The check of each option's value, and the message for a wrong value."""


def settings_of(name: str, **options: Unpack[SettingOptions]) -> Settings:
    """Return the settings of a suite, or raise one UsageError that lists all problems."""
    given: dict[str, Any] = {**options}
    rules = ((option, *rule) for option, rule in _RULES.items() if option in given)
    problems = [f"{option} {given[option]!r} {why}" for option, is_right, why in rules if not is_right(given[option])]
    if problems:
        raise UsageError(f"{name}: {'; '.join(problems)}")
    rule = {option: given.pop(option) for option in _OF_THE_RULE if option in given}
    if "timeout" in given:
        given["timeout"] = NO_LIMIT if given["timeout"] is None else float(given["timeout"])
    return Settings(PassRule(**rule), **given)


@dataclass(frozen=True, slots=True, eq=False)
class DescribedSuite:
    """The description of a suite by its author."""

    name: str
    data: Data
    function: Callable[..., Any]
    given_a_case: bool  # a test function takes a case, a task takes the input
    scorers: tuple[Callable[..., Any], ...]
    settings: Settings
    skip_if: bool | Callable[[], Any] = False
    static: bool = False  # in a class, but given no object of it


MADE: list["EvalSuite"] = []
"""The suites that were made and not collected, kept until pytest has collected everything."""

FILES: set[str] = set()
"""The files in which pytest has looked for tests, kept until it has collected everything."""


class EvalSuite:
    """The object that pytest finds under the name of a suite. Marks and fixtures apply to it as to a function."""

    def __init__(self, described: DescribedSuite) -> None:
        # pytest takes the names in a function's __dict__ for keywords of -k: as few as possible, and private.
        self._bakeoff = described
        MADE.append(self)
        self._place = _place()
        function = described.function
        self.__name__ = str(getattr(function, "__name__", described.name))
        self.__qualname__ = str(getattr(function, "__qualname__", self.__name__))
        self.__module__ = str(getattr(function, "__module__", __name__))
        self.__doc__ = getattr(function, "__doc__", None)
        self.__signature__ = _for_pytest(described)
        if marks := getattr(function, "pytestmark", None):
            self.pytestmark = list(marks)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the decorated function."""
        return self._bakeoff.function(*arguments, **named)

    def __set_name__(self, owner: type, name: str) -> None:
        unittest = sys.modules.get("unittest")
        if unittest is not None and issubclass(owner, unittest.TestCase):
            raise UsageError(
                f"{owner.__name__}.{name}: a unittest.TestCase cannot hold an eval suite: "
                "use a plain class or a function"
            )


def _place() -> tuple[str, int]:
    """Return the file and line of the code that makes a suite."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)


def _for_pytest(described: DescribedSuite) -> inspect.Signature:
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
    function: object = None, /, **options: Unpack[SuiteOptions]
) -> Callable[[Callable[..., Any]], EvalSuite]:
    """Make a test function an eval: one test for each row of `data`, whose return value is scored.

    Args:
        data: the rows: a list, an iterable, a function that returns one, or the path of a data file.
        scorers: at least one scorer of the return value.
        threshold: the score that a case must reach (default 1.0); None records without failing.
        gate: how the rounds of a case become one score: their `mean` (the default), `pass@k` or `pass^k`.
        rounds: how often the function is called for a case; None takes `--eval-rounds`, or 1.
        timeout: seconds for the function, and for each scorer (default 60); None for no limit.
        concurrency: cases at a time; None takes `--eval-jobs`, or 10.
        skip_if: a value, or a function called before data is loaded; a text is the reason.
        null_as_zero: count a scorer that returns None as 0 instead of leaving it out.
        retries: how often the function is called again if a provider or the network fails (default 2).
        before_case: a function of the case that is called before each round of it, outside of its time.
        after_case: a function of the case and its `Record` that is called after each round of it.
    """
    if function is not None:
        name = getattr(function, "__name__", "test_it")
        raise UsageError(f"write `@eval_suite(data=…, scorers=[…])` above {name}: it needs its options in parentheses")

    def decorate(function: Callable[..., Any]) -> EvalSuite:
        static = isinstance(function, staticmethod)
        function = function.__func__ if isinstance(function, staticmethod) else function
        if isinstance(function, EvalSuite) or not callable(function):
            raise UsageError(f"eval_suite decorates a test function, not {function!r}")
        return _suite(str(getattr(function, "__name__", "eval")), function, True, options, static=static)

    return decorate


def describe_eval(name: str, *, task: Callable[..., Any], **options: Unpack[SuiteOptions]) -> EvalSuite:
    """Make an eval of a task, a function of the application that takes an input and returns an output.

    pytest collects it under a name that a test function could have: `test_sums = describe_eval(…)`.

    Args:
        name: the name of the suite in reports.
        task: the function; its other parameters get the values of the row that have their names.
        options: as for `eval_suite`: `data`, `scorers`, and any others.
    """
    if not callable(task):
        raise UsageError(f"{name}: task {task!r} cannot be called")
    return _suite(name, task, False, options)


def _suite(
    name: str, function: Callable[..., Any], given_a_case: bool, options: SuiteOptions, *, static: bool = False
) -> EvalSuite:
    known, needed = SuiteOptions.__annotations__, SuiteOptions.__required_keys__
    wrong = [f"{option!r} is no option" for option in options if option not in known]
    if wrong := wrong + [f"the option {option!r} is missing" for option in sorted(needed - options.keys())]:
        raise TypeError(f"{name}: {'; '.join(wrong)}. Its options are {', '.join(known)}")
    settings: Any = {option: value for option, value in options.items() if option in SettingOptions.__annotations__}
    scorers = check_scorers(name, options["scorers"])
    skip_if = options.get("skip_if", False)
    data, settings = options["data"], settings_of(name, **settings)
    return EvalSuite(DescribedSuite(name, data, function, given_a_case, scorers, settings, skip_if, static))


def check_scorers(suite: str, given: Any) -> tuple[Callable[..., Any], ...]:
    """Return the scorers as callables, or raise a UsageError that names the suite."""
    scorers = tuple(given) if isinstance(given, Iterable) else (given,)
    if not scorers:
        raise UsageError(f"{suite}: `scorers` is empty, so no output could be scored: add a scorer")
    try:
        return tuple(as_scorer(scorer) for scorer in scorers)
    except UsageError as error:
        raise UsageError(f"{suite}: {error}") from error
