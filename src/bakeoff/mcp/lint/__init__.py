"""Find flaws of tools without a model. See docs/reference/mcp-lint.md."""

import tomllib
from pathlib import Path
from typing import Literal, Self

from bakeoff._kernel.model import FrozenModel
from bakeoff.mcp.tools import ServerTool

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


class LintRule(FrozenModel):
    """One kind of problem that lint can find."""

    id: str
    level: Level
    title: str
    why: str
    how: str


class LintFinding(FrozenModel):
    """One place that breaks a rule. Names and texts of servers are untrusted data."""

    rule: str
    server: str
    tool: str = ""
    parameter: str = ""
    what: str

    @classmethod
    def of(cls, tool: ServerTool, rule: str, what: str, parameter: str = "") -> Self:
        """Make a finding about one tool."""
        return cls(rule=rule, server=tool.server, tool=tool.name, parameter=parameter, what=what)

    @property
    def level(self) -> Level:
        return RULES[self.rule].level

    @property
    def place(self) -> str:
        """Return `server/tool: parameter`."""
        return "/".join(part for part in (self.server, self.tool) if part) + (self.parameter and f": {self.parameter}")


_TEXTS = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
RULES = {id: LintRule(id=id, **texts) for id, texts in _TEXTS.items()}
RULE_ORDER = {rule: at for at, rule in enumerate(RULES)}
