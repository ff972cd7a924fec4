"""Plan the container image that agents run in, and the command that builds it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff.errors import UsageError
from bakeoff.subjects.agent_definition import AgentDefinition

CONTAINERFILE = Path(__file__).parent / "container" / "Containerfile"
DEFAULT_TAG = "bakeoff-agents"
_NPM, _PYTHON = ("npm",), ("pip", "pipx", "uv")
# Names become words of a shell command: none may end a word or look like an option.
_PACKAGE = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@._/\[\],=~+-]*")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TAG = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]{0,199}")


@dataclass(frozen=True, slots=True)
class Image:
    """What the image contains."""

    tag: str
    npm: tuple[str, ...]  # packages
    python: tuple[str, ...]  # command=package

    def command(self, engine: str) -> tuple[str, ...]:
        """Return the command that builds the image. Only the folder of the Containerfile is sent to the engine."""
        arguments = {"NPM_AGENTS": " ".join(self.npm), "PYTHON_AGENTS": " ".join(self.python)}
        built = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        return (engine, "build", "--file", str(CONTAINERFILE), "--tag", self.tag, *built, str(CONTAINERFILE.parent))


def plan_image(agents: Mapping[str, AgentDefinition], wanted: Sequence[str], tag: str = DEFAULT_TAG) -> Image:
    """Plan an image with the agents that are asked for, or with all that come from a registry.

    Raise one error with everything that is wrong.
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
