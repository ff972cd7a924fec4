"""Carry out `bakeoff init`: write a small start that runs as it is."""

import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from bakeoff._kernel.choices import StarterKind
from bakeoff._kernel.text import visible
from bakeoff.cli.console import out, say
from bakeoff.doors.mcp.examples import find_example, write_example_files


@dataclass(frozen=True, slots=True)
class Starter:
    """Hold the files of one kind of start, by path, and the commands to try in their folder."""

    about: str
    files: Callable[[], Mapping[str, str]]
    then: tuple[str, ...]


def _bundled(*sources: str) -> Callable[[], Mapping[str, str]]:
    def read() -> dict[str, str]:
        folder = resources.files("bakeoff.bundled")
        return {source.rpartition("/")[2]: folder.joinpath(source).read_text("utf-8") for source in sources}

    return read


def _suite() -> Mapping[str, str]:
    """Return a component suite, in Svelte where there is Node to test it."""
    template = resources.files("bakeoff.bundled") / "templates" / ("svelte" if shutil.which("node") else "python")
    return {f"tests/my-component/{each.name}": each.read_text("utf-8") for each in template.iterdir() if each.is_file()}


def _mcp() -> Mapping[str, str]:
    return find_example("getting-started").contents


def _eval() -> Mapping[str, str]:
    from bakeoff.doors.eval.schema import first_files

    return first_files()


STARTERS: Mapping[StarterKind, Starter] = {
    "eval": Starter("your prompts, models and scorers in one file", _eval, ("bakeoff eval", "bakeoff eval --watch")),
    "components": Starter(
        "a component suite: prompt, reference, tests",
        _suite,
        ("bakeoff verify", "bakeoff run --model local:smollm2 --model oracle --model nop"),
    ),
    "agents": Starter(
        "a command-line coding agent of your own, for the bundled exercises",
        _bundled("starters/agents/one-shot.yaml"),
        (
            "bakeoff models serve -- bakeoff agents run --agent-file one-shot.yaml --agent one-shot --model smollm2 "
            "--exercise 1",
        ),
    ),
    "mcp": Starter("an MCP server and questions for its tools", _mcp, ("bakeoff mcp evaluate", "bakeoff mcp lint")),
    "pytest": Starter(
        "evals as tests", _bundled("starters/pytest/test_capitals.py"), ("pytest test_capitals.py", "bakeoff runs show")
    ),
}


def write_starter(kind: StarterKind, folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files of a start, or none. Other files with these names are overwritten only with `force`."""
    return write_example_files(STARTERS[kind].files(), folder, force=force)


def init(*, kind: StarterKind, folder: Path, force: bool) -> int:
    """Write a start, and print what to do with it."""
    for path in write_starter(kind, folder, force=force):
        say(f"wrote {path}")
    out().print("Now try:")
    if folder.resolve() != Path.cwd():
        out().print(f"  cd {visible(shlex.quote(str(folder)), 2000)}", soft_wrap=True)
    for command in STARTERS[kind].then:
        out().print(f"  {command}", soft_wrap=True)
    return 0
