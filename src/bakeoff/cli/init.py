"""Implement `bakeoff init` and `bakeoff suite new`: write a small starter that runs unchanged."""

import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, get_args

from typer import Argument, Option

from bakeoff._kernel.choices import StarterKind
from bakeoff._kernel.files import os_errors_explained
from bakeoff._kernel.text import visible
from bakeoff.cli.console import out, say
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.errors import UsageError

app = group_of()
suites = group_of("Write suites of your own.", "bakeoff suite new greeting --framework react")


@dataclass(frozen=True, slots=True)
class Starter:
    """The files of one kind of starter, by path, and the commands to try in their folder."""

    about: str
    files: Callable[[], Mapping[str, str]]
    then: tuple[str, ...]


def _bundled(*sources: str) -> Callable[[], Mapping[str, str]]:
    def read() -> dict[str, str]:
        folder = resources.files("bakeoff.bundled")
        return {source.rpartition("/")[2]: folder.joinpath(source).read_text("utf-8") for source in sources}

    return read


def _suite() -> Mapping[str, str]:
    """Return a component suite, in Svelte if Node is installed to test it, else in Python."""
    template = resources.files("bakeoff.bundled") / "templates" / ("svelte" if shutil.which("node") else "python")
    return {f"tests/my-component/{each.name}": each.read_text("utf-8") for each in template.iterdir() if each.is_file()}


def _mcp() -> Mapping[str, str]:
    from bakeoff.doors.mcp.examples import find_example

    return find_example("getting-started").contents


def _eval() -> Mapping[str, str]:
    from bakeoff.doors.eval.config import first_files

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
    """Write all files of a starter, or none. Existing files with other contents are overwritten only with `force`."""

    from bakeoff.doors.mcp.examples import write_example_files

    return write_example_files(STARTERS[kind].files(), folder, force=force)


@command(app, "init")
def init(
    *,
    kind: Annotated[
        StarterKind, Argument(metavar="KIND", help=f"What to begin with: {', '.join(get_args(StarterKind))}.")
    ],
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder to write to.")] = Path(),
    force: bool = flag(False, "Overwrite existing files."),
) -> None:
    """Write a small start that runs as it is.

    Example: bakeoff init eval
    """
    print_start(write_starter(kind, folder, force=force), folder, STARTERS[kind].then)


def print_start(files: Iterable[Path], folder: Path, commands: Iterable[str]) -> None:
    """Print which files were written, and the commands to try in their folder."""
    for path in files:
        say(f"wrote {path}")
    out().print("Now try:")
    if folder.resolve() != Path.cwd():
        out().print(f"  cd {visible(shlex.quote(str(folder)), 2000)}", soft_wrap=True)
    for line in commands:
        out().print(f"  {line}", soft_wrap=True)


@command(suites, "new")
def new(
    *,
    name: Annotated[str, Argument(metavar="NAME", help="The name of the suite, and of its folder.")],
    framework: Annotated[
        Literal["svelte", "react", "vue", "typescript", "python"], Option("--framework", help="What answers are in.")
    ] = "svelte",
    suites: Annotated[
        Path | None, Option("--suites", metavar="DIR", help="The folder of suites. Default: `tests`.")
    ] = None,
) -> int:
    """Write a small suite that verifies, to be changed into your own.

    Example: bakeoff suite new greeting --framework react
    """

    from bakeoff import bundled
    from bakeoff.doors.components.suites import DEFAULT_FOLDER

    if Path(name).name != name or name.startswith(".") or not name.isprintable() or not name.strip():
        raise UsageError(f"{name!r} is no name for a suite: it becomes a folder, such as {'my-counter'!r}")
    folder = (suites or DEFAULT_FOLDER) / name
    if folder.exists():
        raise UsageError(f"{folder} exists already: choose another name, or remove it first")
    template = Path(bundled.__file__).parent / "templates" / framework
    with os_errors_explained(folder, "written", kind=UsageError):
        shutil.copytree(template, folder, copy_function=shutil.copyfile)
    words = ["bakeoff", "verify", *(["--suites", str(suites)] if suites else []), "--suite", name, "--watch"]
    for path in sorted(folder.iterdir()):
        out().print(f"wrote {visible(str(path))}")
    out().print(f"Check it with `{visible(shlex.join(words), 1000)}`, and change it into yours.")
    return 0
