"""Score with short code in a configuration: `javascript` and `python`. It runs as you, in one process per language."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from pydantic import JsonValue

from bakeoff._kernel.json import is_number
from bakeoff.errors import GraderError
from bakeoff.protocols import Needs, ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.registry import scorer
from bakeoff.toolchains.user_code import Language, UserCode, argv_of


@dataclass(frozen=True, slots=True)
class _CodeScorer(ConfigurableScorer):
    """The code gets `output` and `context`. It returns a boolean, a number, or `{pass, score, reason}`."""

    code: str  # an expression, the body of a function, or `file://path[:function]`
    _: KW_ONLY
    threshold: float | None = None  # the number that is enough; None: any above 0
    graded: bool = False  # score the number itself, and not whether it is enough
    config: JsonValue = None  # `context.config` for the code
    name: str = "code"
    LANGUAGE: ClassVar[Language]

    def __post_init__(self) -> None:
        ConfigurableScorer.__post_init__(self)
        argv_of(self.LANGUAGE)  # raises where this machine cannot run it

    @property
    def source(self) -> UserCode:
        return UserCode(self.LANGUAGE, self.code, usual="get_assert")

    @property
    def needs(self) -> Needs:
        return Needs(resources=(self.source.worker,))

    async def __call__(self, given: ScoreInput) -> Score:
        """Score what the code returns. Code that raises an error fails the answer, as an assertion does."""
        context = {**code_context(given), "config": self.config}
        value, error = await self.source.called(given.resources, given.output, context)
        if error is not None:
            return self.scored(0.0, f"the code raised {error}")
        told = value if isinstance(value, Mapping) else {}
        passed = told.get("pass", told.get("pass_")) if told else value
        number = told.get("score", passed) if told else value
        if not isinstance(number, bool) and not is_number(number):
            raise GraderError(f"{self.source} returned {value!r:.200}: return a boolean, a number or {{pass, score}}")
        enough = number > 0 if self.threshold is None else number >= self.threshold
        if isinstance(passed, bool):
            enough = passed and (enough or self.threshold is None)
        reason = told.get("reason") or ("" if enough else f"{self.source} is {value!r:.100}")
        return self.scored(min(1.0, max(0.0, float(number))) if self.graded else float(enough), str(reason))


@scorer("javascript", main="code")
@dataclass(frozen=True, slots=True)
class JavaScript(_CodeScorer):
    """Scores what code in JavaScript returns for `output` and `context`, such as `output.length < 20`."""

    _: KW_ONLY
    name: str = "javascript"
    LANGUAGE: ClassVar[Language] = "javascript"


@scorer("python", main="code")
@dataclass(frozen=True, slots=True)
class Python(_CodeScorer):
    """Scores what code in Python returns for `output` and `context`, such as `len(output) < 20`."""

    _: KW_ONLY
    name: str = "python"
    LANGUAGE: ClassVar[Language] = "python"


def code_context(given: ScoreInput) -> dict[str, Any]:
    """Return what code may know of a case: its values and its prompt."""
    return {"vars": dict(given.row), "prompt": given.case.prompt, "test": {"vars": dict(given.row)}}
