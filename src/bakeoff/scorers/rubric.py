"""Score by a rubric, a list of weighted criteria that may stand in a file: `rubric`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, JsonValue

from bakeoff._kernel.files import read_file
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.protocols import ScoreInput
from bakeoff.scorers.material import Shown, question_and_answer
from bakeoff.scorers.model_judge import AskingScorer, JudgeVerdict
from bakeoff.scorers.registry import scorer

_LEVELS = {"met": 1.0, "partly met": 0.5, "not met": 0.0}
_HEADING = re.compile(r"##\s+(?P<name>.+?)\s*(?:\(\s*(?:weight\s*:?\s*)?(?P<weight>\d+(?:\.\d+)?)\s*\))?\s*")


class Criterion(FrozenModel):
    """One criterion of a rubric."""

    name: str = Field(min_length=1)
    text: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0)


class _RubricFile(FrozenModel):
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    name: str = "rubric"
    show: tuple[Shown, ...] = ()


@scorer("rubric", main="criteria")
@dataclass(frozen=True)
class Rubric(AskingScorer):
    """Asks a model, for each criterion, whether the answer meets it; the score is the weighted mean."""

    criteria: tuple[Criterion, ...]
    _: KW_ONLY
    show: tuple[Shown, ...] = ()
    name: str = "rubric"

    PARTS: ClassVar = ("{criteria}",)
    PROMPT: ClassVar = (
        "You are a careful and impartial judge of answers. Decide for each criterion by itself whether the answer "
        "meets it:\n\n{criteria}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [criterion.name for criterion in self.criteria]
        if not names:
            raise UsageError(f"scorer {self.name!r}: the rubric has no criteria")
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"scorer {self.name!r}: two criteria are called {twice[0]!r}: rename one")

    @classmethod
    def from_file(cls, file: str | PathLike[str], **options: Any) -> Self:
        """Read a rubric from YAML (`criteria`, a list of `name`, `text`, `weight`) or Markdown (`## name (weight 2)`).

        Options are those of the scorer, and go before what the file says.
        """
        path = Path(file)
        found = _markdown(path) if path.suffix.lower() in (".md", ".markdown") else _yaml(path)
        return cls(**{"criteria": found.criteria, "name": found.name, "show": found.show, **options})

    def instructions(self) -> str:
        listed = "\n".join(f"{key}: {one.name}. {one.text}" for key, one in self._by_key().items())
        return super().instructions().replace("{criteria}", listed)

    def texts(self, given: ScoreInput) -> dict[str, str]:
        return question_and_answer(given, self.show)

    def schema(self, texts: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - the same for all
        level = {"type": "string", "enum": list(_LEVELS)}
        fields = {"rationale": {"type": "string"}, **dict.fromkeys(self._by_key(), level)}
        return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}

    def verdict(self, answer: Any, texts: Mapping[str, str]) -> JudgeVerdict:  # noqa: ARG002
        met: dict[str, JsonValue] = {one.name: answer[key] for key, one in self._by_key().items()}
        weights = [one.weight for one in self.criteria]
        value = sum(_LEVELS[answer[key]] * one.weight for key, one in self._by_key().items()) / sum(weights)
        wrong = [f"{name} is {level}" for name, level in met.items() if level != "met"]
        reason = f"{', '.join(wrong) or 'all criteria are met'}: {answer['rationale']}"
        return JudgeVerdict("", min(1.0, value), reason, answer["rationale"], {"criteria": met})

    def _by_key(self) -> dict[str, Criterion]:
        return {f"criterion_{number}": criterion for number, criterion in enumerate(self.criteria, 1)}


def _yaml(path: Path) -> _RubricFile:
    from bakeoff._kernel.yaml import read_yaml

    examples = {"criteria": "a list of objects with `name`, `text` and, if you like, `weight`"}
    return read_yaml(path).read(_RubricFile, examples)


def _markdown(path: Path) -> _RubricFile:
    try:
        text = read_file(path, pipes=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}") from error
    criteria = list(_criteria(text, path))
    if not criteria:
        raise UsageError(f"{path} has no criteria: write each as `## name (weight 2)`, with what it means below")
    return _RubricFile(criteria=tuple(criteria))


def _criteria(text: str, path: Path) -> Iterator[Criterion]:
    """Yield the sections of a Markdown file; what stands before the first is for its readers."""
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if _HEADING.fullmatch(line)]
    for place, end in pairwise([*places, len(lines)]):
        heading = _HEADING.fullmatch(lines[place])
        assert heading is not None
        meaning = " ".join(" ".join(lines[place + 1 : end]).split())
        weight = float(heading["weight"] or 1)
        if not meaning or not weight:
            what = "has no text: say below the heading when it is met" if not meaning else "weighs nothing"
            raise UsageError(f"{path}:{place + 1}: criterion {heading['name']!r} {what}")
        yield Criterion(name=heading["name"], text=meaning, weight=weight)
