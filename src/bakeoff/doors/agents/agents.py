"""List agents: the shipped ones, the user's own, and which of them can be used here."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
_MAX_FILE_LENGTH = 1_000_000  # of a file that an agent brings along; plans store it
_AT_ONCE = 4  # each starts a program, and some programs are slow


def read_agent(file: Path) -> AgentDefinition:
    """Read an agent from its YAML file. Raise one error with all problems, each with its line."""
    placed = read_yaml(file)
    if placed.value is None:
        raise UsageError(f"{file} is empty: an agent has name, defaultProvider, install and command")
    agent = placed.read(AgentDefinition)
    if agent.name in CONTROLS:
        raise UsageError(f"{file}: name: {agent.name!r} is one of the controls ({', '.join(CONTROLS)}): choose another")
    return agent.model_copy(
        update={"files": {name: _local_file(file, name, path) for name, path in agent.files.items()}}
    )


def _local_file(agent_file: Path, name: str, path: str) -> str:
    """Return the text of a file that an agent brings along. Its path is relative to the agent's file."""
    found = agent_file.parent / Path(path).expanduser()
    try:
        with found.open(encoding="utf-8") as opened:
            text = opened.read(_MAX_FILE_LENGTH + 1)
    except (OSError, ValueError) as error:
        why = "it is not a UTF-8 text" if isinstance(error, ValueError) else error.strerror
        raise UsageError(f"{agent_file}: files.{name}: {found} cannot be read: {why}") from error
    if len(text) > _MAX_FILE_LENGTH:
        too_long = f"longer than {_MAX_FILE_LENGTH:,} characters: install it as a program"
        raise UsageError(f"{agent_file}: files.{name}: {found} is {too_long}")
    return text


def known_agents(files: Iterable[Path] = ()) -> dict[str, AgentDefinition]:
    """Return the shipped agents and the user's, which replace shipped ones of the same name."""
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
        """Return True if the agent can be run here."""
        return self.installed and not self.missing and self.problem is None


async def agent_statuses(agents: Mapping[str, AgentDefinition], sandbox: Sandbox) -> list[AgentStatus]:
    """Return the state of each agent on this machine. Installed agents are asked for their version in the sandbox."""
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


CONTAINERFILE = Path(__file__).parent / "container" / "Containerfile"
DEFAULT_TAG = "bakeoff-agents"
_NPM, _PYTHON = ("npm",), ("pip", "pipx", "uv")
# Names become words of a shell command, so they must not contain spaces or look like options.
_PACKAGE = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@._/\[\],=~+-]*")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TAG = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]{0,199}")


@dataclass(frozen=True, slots=True)
class Image:
    """A container image: its tag, and the packages of the agents to install."""

    tag: str
    npm: tuple[str, ...]  # packages
    python: tuple[str, ...]  # command=package

    def command(self, engine: str) -> tuple[str, ...]:
        """Return the command that builds the image. Only the folder of the Containerfile is sent to the engine."""
        arguments = {"NPM_AGENTS": " ".join(self.npm), "PYTHON_AGENTS": " ".join(self.python)}
        built = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        return (engine, "build", "--file", str(CONTAINERFILE), "--tag", self.tag, *built, str(CONTAINERFILE.parent))


def plan_image(agents: Mapping[str, AgentDefinition], wanted: Sequence[str], tag: str = DEFAULT_TAG) -> Image:
    """Plan an image with the wanted agents or, by default, all that come from a registry.

    Raises one error that lists all problems.
    """
    if not _TAG.fullmatch(tag):
        raise UsageError(
            f"--tag {tag!r:.100} is not the name of an image: write it as {DEFAULT_TAG} or {DEFAULT_TAG}:1"
        )
    names = list(dict.fromkeys(wanted)) or [name for name, agent in agents.items() if _obstacle(agent) is None]
    problems = []
    for name in names:
        if name not in agents:
            problems.append(f"--agent {name!r:.100} is not one of {', '.join(agents)}")
        elif obstacle := _obstacle(agents[name]):
            problems.append(f"--agent {name}: {obstacle}")
    if problems:
        raise UsageError("\n".join(problems))
    chosen = [agents[name] for name in names]
    return Image(
        tag,
        npm=tuple(str(agent.install.package) for agent in chosen if agent.install.method in _NPM),
        python=tuple(
            f"{agent.command[0]}={agent.install.package}" for agent in chosen if agent.install.method in _PYTHON
        ),
    )


def _obstacle(agent: AgentDefinition) -> str | None:
    """Return why an agent cannot be put into the image, or None if it can."""
    install, program = agent.install, agent.command[0]
    if install.method not in (*_NPM, *_PYTHON) or install.package is None:
        return (
            f"it is installed by {install.method}, and the image takes npm and Python packages only: "
            f"build your own image `FROM {DEFAULT_TAG}` ({install.hint})"
        )
    if not _PACKAGE.fullmatch(install.package):
        return f"install.package: {install.package!r:.100} is not the name of a package"
    if not _PROGRAM.fullmatch(program):
        return f"command: {program!r:.100} is a path, and the image finds programs by name"
    return None
