"""List the agents: those that ship, those that the user describes, and which of them can be used here."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.yaml import read_yaml
from bakeoff.errors import UsageError
from bakeoff.protocols import Sandbox
from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.subjects.agent_definition import AgentDefinition
from bakeoff.subjects.agent_program import StartedProgram, is_installed, try_to_start

_SHIPPED = Path(__file__).with_name("shipped")
# The best known agents come first in lists; others follow by name.
_ORDER = (
    *("claude", "aider", "goose", "codex", "copilot", "gemini", "opencode"),
    *("qwen", "cursor", "kimi", "vibe", "grok", "amp", "mini"),
)
CONTROLS = ("oracle", "nop", "cheat")
"""Names of the subjects that test the exercises. They are not agents."""
_AT_ONCE = 4  # each starts a program, and some programs are slow


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
    problem: str | None  # why it does not start in the sandbox
    provider: str
    missing: tuple[str, ...]  # environment variables
    metered: tuple[str, ...]  # providers whose traffic we can meter
    login: bool  # a login can replace a key
    model_required: bool  # it does not start without --model
    install: str

    @property
    def ready(self) -> bool:
        return self.installed and not self.missing and self.problem is None


async def agent_statuses(agents: Mapping[str, AgentDefinition], sandbox: Sandbox) -> list[AgentStatus]:
    """Return what this machine has of each agent. Each that is installed is asked for its version in the sandbox."""
    image = sandbox if isinstance(sandbox, DockerSandbox) else None
    room = asyncio.Semaphore(_AT_ONCE)
    environment = read_environment()

    async def status(agent: AgentDefinition) -> AgentStatus:
        async with room:
            installed = await asyncio.to_thread(is_installed, agent.command[0], image)
            started = await try_to_start(agent, sandbox) if installed else StartedProgram()
        return AgentStatus(
            name=agent.name,
            description=agent.description,
            installed=installed,
            version=started.version,
            problem=started.problem,
            model_required=agent.model.required,
            provider=agent.default_provider,
            missing=tuple(agent.missing(agent.default_provider, environment)),
            metered=tuple(agent.meter),
            login=bool(agent.home.login),
            install=agent.install.hint,
        )

    return list(await asyncio.gather(*map(status, agents.values())))
