"""List the agents: those that ship, those that the user describes, and which of them can be used here."""

import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.yaml_with_lines import read_yaml
from bakeoff.errors import UsageError
from bakeoff.subjects.agent_definition import AgentDefinition
from bakeoff.subjects.agent_program import version_of

_SHIPPED = Path(__file__).with_name("shipped")
# The best known agents come first in lists; others follow by name.
_ORDER = (
    *("claude", "aider", "goose", "codex", "copilot", "gemini", "opencode"),
    *("qwen", "cursor", "kimi", "vibe", "grok", "amp", "mini"),
)
CONTROLS = ("oracle", "nop", "cheat")
"""Names of the subjects that test the exercises. They are not agents."""
_VERSIONS_AT_ONCE = 8  # each starts a program, and some programs are slow


def read_agent(file: Path) -> AgentDefinition:
    """Read an agent from its YAML. Raise one error with everything that is wrong in it, each with its line."""
    placed = read_yaml(file)
    if placed.value is None:
        raise UsageError(f"{file} is empty: an agent has name, defaultProvider, install and command")
    agent = placed.read(AgentDefinition)
    if agent.name in CONTROLS:
        raise UsageError(f"{file}: name: {agent.name!r} is one of the controls ({', '.join(CONTROLS)}): choose another")
    return agent


def known_agents(files: Iterable[Path] = ()) -> dict[str, AgentDefinition]:
    """Return the shipped agents and those of the user, which may replace a shipped one."""
    names = sorted(file.stem for file in _SHIPPED.glob("*.yaml"))
    names.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    shipped = {name: read_agent(_SHIPPED / f"{name}.yaml") for name in names}
    own = [read_agent(file) for file in files]
    return {**shipped, **{agent.name: agent for agent in own}}


class AgentStatus(FrozenModel):
    """One line of `bakeoff agents list`."""

    name: str
    description: str
    installed: bool
    version: str | None
    provider: str
    missing: tuple[str, ...]  # environment variables
    metered: tuple[str, ...]  # providers whose traffic we can meter
    login: bool  # a login can replace a key
    install: str

    @property
    def ready(self) -> bool:
        return self.installed and not self.missing


def agent_statuses(agents: Mapping[str, AgentDefinition]) -> list[AgentStatus]:
    """Return what this machine has of each agent. The programs are asked for their versions in parallel."""
    environment = read_environment()
    with ThreadPoolExecutor(_VERSIONS_AT_ONCE) as pool:
        versions = list(pool.map(version_of, agents.values()))
    return [
        AgentStatus(
            name=agent.name,
            description=agent.description,
            installed=shutil.which(agent.command[0]) is not None,
            version=version,
            provider=agent.default_provider,
            missing=tuple(agent.missing(agent.default_provider, environment)),
            metered=tuple(agent.meter),
            login=bool(agent.home.login),
            install=agent.install.hint,
        )
        for agent, version in zip(agents.values(), versions, strict=True)
    ]
