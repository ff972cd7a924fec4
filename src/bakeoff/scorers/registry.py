"""Register scorers where they are written: `@scorer("contains")` above a class is all that every door needs.

The decorators are found by reading the modules of this package, not by importing them, so that a lookup is cheap and a
scorer is imported when it is first used.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from bakeoff.plan import ScorerSpec
    from bakeoff.protocols import Scorer
    from bakeoff.scorers.configurable import ConfigurableScorer

Decorated = TypeVar("Decorated", bound="type[ConfigurableScorer]")

_DECLARATION = re.compile(
    r'^@scorer\("(?P<kind>[\w-]+)"(?:, main="(?P<main>\w+)")?\)\n(?:@.*\n)*class (?P<name>\w+)', re.MULTILINE
)


def scorer(kind: str, *, main: str | None = None) -> Callable[[Decorated], Decorated]:
    """Register a scorer for plans, configuration files and `from bakeoff.scorers import …`.

    Write both arguments as literals on the line of the decorator, which stands above `@dataclass`.

    Args:
        kind: names the scorer in plans and configuration files.
        main: the option that a plain value stands for in a configuration file, as in `- judge: It is polite.`
    """

    def register(cls: Decorated) -> Decorated:
        if scorer_kinds().get(kind) != ScorerKind(kind, cls.__module__, cls.__name__, main):
            raise TypeError(f"{cls.__name__}: write the arguments of @scorer as literals, in a module of this package")
        return cls

    return register


@dataclass(frozen=True, slots=True)
class ScorerKind:
    """A registered scorer, which may not be imported yet."""

    kind: str
    module: str
    name: str
    main: str | None = None

    def load(self) -> "type[ConfigurableScorer]":
        """Import the scorer's class."""
        found: type[ConfigurableScorer] = getattr(import_module(self.module), self.name)
        return found

    def build(self, spec: "ScorerSpec") -> "Scorer":
        """Build the scorer that a plan names. Raises UsageError for wrong options."""
        built: Scorer = self.load().from_spec(spec)  # type: ignore[assignment]  # its subclasses can be called
        return built


@cache
def scorer_kinds() -> Mapping[str, ScorerKind]:
    """Return the registered scorers by kind, sorted."""
    package, folder = __name__.rpartition(".")[0], Path(__file__).parent
    found = [
        ScorerKind(
            declared["kind"],
            ".".join((package, *path.relative_to(folder).with_suffix("").parts)),
            declared["name"],
            declared["main"],
        )
        for path in folder.rglob("*.py")
        for declared in _DECLARATION.finditer(path.read_text("utf-8"))
    ]
    return {each.kind: each for each in sorted(found, key=lambda each: each.kind)}
