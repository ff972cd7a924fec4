"""The image in which agents run: which of them can be put there, and the engine's command that does it."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff.errors import UsageError
from bakeoff.subjects.agent_definition import AgentDefinition

CONTAINERFILE = Path(__file__).parent / "container" / "Containerfile"
DEFAULT_TAG = "bakeoff-agents"
_NPM, _PYTHON = ("npm",), ("pip", "pipx", "uv")
# They become words of a shell's command: nothing that could end one, and nothing that could be taken for an option.
_PACKAGE = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@._/\[\],=~+-]*")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TAG = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]{0,199}")


@dataclass(frozen=True, slots=True)
class Image:
    """What is to be built."""

    tag: str
    npm: tuple[str, ...]  # packages
    python: tuple[str, ...]  # command=package

    def command(self, engine: str) -> tuple[str, ...]:
        """The Containerfile's folder has nothing else in it, so that nothing else is sent to the engine."""
        arguments = {"NPM_AGENTS": " ".join(self.npm), "PYTHON_AGENTS": " ".join(self.python)}
        built = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        return (engine, "build", "--file", str(CONTAINERFILE), "--tag", self.tag, *built, str(CONTAINERFILE.parent))


def plan_image(agents: Mapping[str, AgentDefinition], wanted: Sequence[str], tag: str = DEFAULT_TAG) -> Image:
    """The agents that are asked for, or all that come from a registry; one error with all that is wrong."""
    if not _TAG.fullmatch(tag):
        raise UsageError(f"--tag {tag!r:.100} is no name of an image: write it as {DEFAULT_TAG} or {DEFAULT_TAG}:1")
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


def shell_words(command: Sequence[str]) -> str:
    """As someone could type it."""
    return shlex.join(command)


def _obstacle(agent: AgentDefinition) -> str | None:
    """Why an agent cannot be put into the image; None if it can."""
    install, program = agent.install, agent.command[0]
    if install.method not in (*_NPM, *_PYTHON) or install.package is None:
        return (
            f"it is installed by {install.method}, and the image takes packages of npm and Python only: "
            f"build one of your own `FROM {DEFAULT_TAG}` ({install.hint})"
        )
    if not _PACKAGE.fullmatch(install.package):
        return f"install.package: {install.package!r:.100} is no name of a package"
    if not _PROGRAM.fullmatch(program):
        return f"command: {program!r:.100} is a path, and the image has programs by name"
    return None
