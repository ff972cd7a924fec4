"""Hold what a configuration says, whatever its format: prompts, subjects, cases and scorers, each with its place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bakeoff.doors.eval.config import LimitsConfig
from bakeoff.models.prompt_templates import PromptTemplate
from bakeoff.plan import ScorerSpec, SubjectSpec
from bakeoff.protocols import Scorer


def printable(text: str, longest: int = 200) -> str:
    """Return a text as a name: in one line, without control characters, and cut if it is long."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * longest]).split())
    return shown if len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class SuitePrompt:
    """A prompt with its name and its place, as `file:line: key`."""

    name: str
    template: PromptTemplate
    where: str


@dataclass(frozen=True, slots=True)
class PromptCase:
    """A case before its prompt is filled in."""

    where: str
    name: str | None = None
    input: Any = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = None
    scorers: tuple[ScorerSpec, ...] | None = None
    threshold: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PromptSuite:
    """A configuration that was read and checked."""

    file: Path
    name: str
    prompts: tuple[SuitePrompt, ...]
    subjects: tuple[SubjectSpec, ...]
    cases: tuple[PromptCase, ...]
    scorers: tuple[ScorerSpec, ...]
    built: Mapping[str, Scorer]  # by the digests of their specs
    threshold: float | None = 1.0
    rounds: int = 1
    seed: int = 0
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    warnings: tuple[str, ...] = ()  # about what is not understood, or not run
    sources: tuple[Path, ...] = ()  # the files that it was read from
