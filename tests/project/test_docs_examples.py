"""Every example in README.md, CONTRIBUTING.md and docs/ is run, so that none can go stale.

- ```` ```python ```` is a script, run in an empty folder.
- ```` ```console ```` holds commands after `$ ` (continued after `> `), which share one folder. The lines below one
  must be in its output, in that order; `…` stands for any text.
- ```` ```bash ```` is a script for `bash -e`.
- Times, dates, sizes of columns and names of runs may differ from those on the page (`without_chance`).
- A comment `<!-- one folder -->` on a page lets all of its blocks share one folder, as in a tutorial.
- A comment `<!-- varies -->` on the line above a block says that its output depends on the machine, such as on what the
  embedded model answers. It is not compared. `python -m scripts.docs_outputs PAGE` writes the outputs of a page anew.
- A comment `<!-- exit: 1 -->` on the line above a block is the exit code of its last command; otherwise all are 0.
- A comment `<!-- files: FOLDER -->` on the line above a block copies a folder of the repository to its folder first.
- `make` is not run from here: its targets must exist, and no output may be promised.
- A comment `<!-- not run -->` on the line above a block keeps it from being run; it is highlighted all the same.
- What is in no language is marked `text`.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bakeoff._kernel.environment import cache_folder
from bakeoff.storage.own_runs import remember

from ..made_once import made_once
from ..warm_bakeoff import WarmBakeoff, of_no_person, warm_bakeoff_of

ROOT = Path(__file__).parents[2]
RUN = ("python", "console", "bash")
# Names that look like a language we run, and would let an example slip past this test.
LOOKALIKES = ("", "py", "python3", "pycon", "sh", "shell", "zsh", "shell-session", "terminal")
FENCE = re.compile(r"^(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
ONE_FOLDER = "<!-- one folder -->"
VARIES = "<!-- varies -->"
NOT_RUN = "<!-- not run -->"
FILES = re.compile(r"<!--\s*files:\s*(\S+)\s*-->")
EXIT = re.compile(r"<!--\s*exit:\s*(\d+)\s*-->")


@dataclass(frozen=True)
class Block:
    place: str
    language: str
    text: str
    exit_code: int
    varies: bool = False
    files: str | None = None


def blocks_of(markdown: str, name: str) -> list[Block]:
    """The fenced blocks of one page, with the line on which each begins."""
    blocks = []
    lines = markdown.splitlines()
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first, body = number, []
        closing = re.compile(rf"^\s*{opening['ticks'][0]}{{{len(opening['ticks'])},}}\s*$")
        while number < len(lines) and not closing.match(lines[number]):
            body.append(lines[number].removeprefix(opening["indent"]))
            number += 1
        assert number < len(lines), f"{name}:{first}: this block is never closed"
        number += 1
        language = (opening["info"].split() or [""])[0].lower()
        above = lines[first - 2] if first > 1 else ""
        language = "text" if NOT_RUN in above else language
        exit_code = EXIT.search(above)
        code = int(exit_code[1]) if exit_code else 0
        files = FILES.search(above)
        text, copied = "\n".join(body), files[1] if files else None
        blocks.append(Block(f"{name}:{first}", language, text, code, VARIES in above, copied))
    return blocks


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


SCENARIOS = "docs/how-to/evals.md:"  # test_scenarios.py runs them all in one pytest


def examples_of(page: Path) -> list[tuple[Block, ...]]:
    """The blocks of a page that are run: each by itself, or all together in one folder."""
    text = page.read_text("utf-8")
    blocks = [block for block in blocks_of(text, str(page.relative_to(ROOT))) if block.language in RUN]
    together = ONE_FOLDER in text
    return [tuple(blocks)] if together else [(block,) for block in blocks]


BLOCKS = [block for page in pages() for block in blocks_of(page.read_text("utf-8"), str(page.relative_to(ROOT)))]
EXAMPLES = [example for page in pages() for example in examples_of(page) if not example[0].place.startswith(SCENARIOS)]


# Characters that make a command line more than a program and its arguments.
SHELL = re.compile(r"[|&;<>$`\\*?~\n()\[\]{}#=]")


def is_plain(line: str) -> bool:
    return line.startswith("bakeoff ") and not SHELL.search(line)


@dataclass(frozen=True)
class Runner:
    """Runs programs in the folder of one example, and returns the exit code with stdout and stderr merged."""

    folder: Path
    environment: dict[str, str]
    warm: WarmBakeoff
    demos: Path

    def shell(self, line: str, *options: str) -> tuple[int, str]:
        """Run a command line; a plain `bakeoff …` needs no shell and no cold start."""
        if is_plain(line):
            started = line.startswith("bakeoff demo") and not any(self.folder.iterdir())
            return self.demo(line) if started else self.plain(line)
        done = subprocess.run(
            ["bash", *options, "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=240,
            check=False,
        )
        return done.returncode, done.stdout

    def plain(self, line: str) -> tuple[int, str]:
        return self.warm.run_merged(*shlex.split(line), cwd=self.folder, env=self.environment)

    def demo(self, line: str) -> tuple[int, str]:
        """Run a demonstration in an empty folder once in a test run: the examples that begin with it get copies."""
        made, (code, output) = made_once(
            self.demos / re.sub(r"[^a-z]+", "-", line), lambda folder: replace(self, folder=folder).plain(line)
        )
        shutil.copytree(made, self.folder, dirs_exist_ok=True)
        with chdir(self.folder):
            for plan in Path("results/runs").glob("*/plan.json"):
                remember(plan.parent, plan.read_bytes())  # whoever reads the page has started it there
        return code, output

    def script(self, text: str) -> tuple[int, str]:
        script = self.folder.with_name("example.py")
        script.write_text(text + "\n", "utf-8")
        return self.warm.run_merged(str(script), cwd=self.folder, env=self.environment)


@pytest.fixture(scope="session")
def warm(pytestconfig: pytest.Config) -> Iterator[WarmBakeoff]:
    with warm_bakeoff_of(pytestconfig, "examples") as warm:
        yield warm


@pytest.fixture
def runner(tmp_path: Path, warm: WarmBakeoff, answered_once: dict[str, str], shared_folder: Path) -> Runner:
    """A home of its own for each example. The cache is not a setting: what was fetched and found out is kept there."""
    folder, home = tmp_path / "here", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    shared = {**answered_once, "BAKEOFF_CACHE": str(cache_folder())}
    return Runner(folder, {**of_no_person(), "HOME": str(home), **shared}, warm, shared_folder / "demos")


@dataclass(frozen=True)
class Command:
    line: str
    expected: tuple[str, ...]


def commands_of(text: str) -> list[Command]:
    """The commands of a console block, each with the lines promised below it."""
    commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], ()))
        elif (line == ">" or line.startswith("> ")) and commands and not commands[-1].expected:
            commands[-1] = Command(commands[-1].line + "\n" + line[2:], ())
        elif line.strip():
            assert commands, f"a console block begins with `$ `, not with {line!r}"
            commands[-1] = Command(commands[-1].line, (*commands[-1].expected, line.rstrip()))
    return commands


# What differs from one run to the next, and what is then compared in its place.
CHANCE = {
    r"\d{4}-\d\d-\d\d(?:[T-]\d\d[-:_]\d\d[-:_]\d\d(?:\.\d+Z)?)?": "(date)",
    r"\b\d[\d,.]*\s?(?:µs|ms|s|min|h)\b(?: \d+ s)?": "(time)",
    r"commands ran in the .*": "commands ran in the (sandbox)",
    r"[─━]{2,}": "─",
    r"([=_!-])\1{2,}": r"\1",
    r"\s+": " ",
}


def without_chance(line: str) -> str:
    for pattern, words in CHANCE.items():
        line = re.sub(pattern, words, line)
    return line.strip()


def first_missing(expected: tuple[str, ...], output: str) -> str | None:
    """The first promised line that is not in the output below the ones before it."""
    rest = iter([without_chance(line) for line in output.splitlines()])
    for promise in expected:
        parts = re.split(r"\s*…\s*", without_chance(promise))
        pattern = re.compile(".*".join(map(re.escape, parts)))
        if not any(pattern.fullmatch(line) for line in rest) and promise != "…":
            return promise
    return None


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def is_make(line: str) -> bool:
    return re.match(r"make(\s|$)", line.strip()) is not None


def assert_make_targets_exist(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    asked = {word for word in words if "=" not in word and not word.startswith("-")}
    assert asked <= make_targets(), f"`{line}`: the Makefile has no target {asked - make_targets()}"


def check_console(block: Block, runner: Runner) -> None:
    commands = commands_of(block.text)
    assert commands, "a console block without a `$ ` line runs nothing: mark it as text"
    for command in commands:
        if is_make(command.line):
            assert_make_targets_exist(command.line)
            assert not command.expected, f"`{command.line}` is not run here, so its output cannot be promised"
            continue
        code, output = runner.shell(command.line)
        allowed = block.exit_code if command is commands[-1] else 0
        assert code == allowed, f"`{command.line}` left with {code}, not {allowed}:\n{output}"
        missing = None if block.varies else first_missing(command.expected, output)
        assert missing is None, f"`{command.line}` does not print {missing!r}:\n{output}"


def check_bash(block: Block, runner: Runner) -> None:
    lines = block.text.splitlines()
    for line in filter(is_make, lines):
        assert_make_targets_exist(line)
    commands = [line for line in lines if not is_make(line)]
    apart = all(line.startswith("bakeoff ") and not line.endswith("\\") for line in commands)
    code, output = 0, ""
    # As `bash -e` does, a script of nothing but commands ends with the first that fails.
    for script in commands if apart else ["\n".join(commands)]:
        code, output = runner.shell(script, "-e")
        if code:
            break
    assert code == block.exit_code, f"left with {code}, not {block.exit_code}:\n{output}"


def check_python(block: Block, runner: Runner) -> None:
    code, output = runner.script(block.text)
    assert code == block.exit_code, f"left with {code}, not {block.exit_code}:\n{output}"


CHECKS = {"console": check_console, "bash": check_bash, "python": check_python}


def ring_of(example: tuple[Block, ...]) -> pytest.MarkDecorator:
    """Return the mark of an example: README's are a journey of `make test`."""
    return pytest.mark.journey if example[0].place.startswith("README.md") else pytest.mark.full


@pytest.mark.parametrize("example", [pytest.param(each, id=each[0].place, marks=ring_of(each)) for each in EXAMPLES])
def test_the_example_does_what_the_page_says(example: tuple[Block, ...], runner: Runner) -> None:
    for block in example:
        if block.files:
            shutil.copytree(ROOT / block.files, runner.folder, dirs_exist_ok=True)
        CHECKS[block.language](block, runner)


def test_no_block_escapes_by_its_name() -> None:
    escaped = [f"{block.place}: {block.language!r}" for block in BLOCKS if block.language in LOOKALIKES]
    assert escaped == [], f"use python, console or bash for what is run, and {NOT_RUN} for what is not"


PAGE = """\
# A page

<!-- exit: 3 -->
```console
$ echo one; \\
> exit 3
o…
```

- in a list:

  ```python title="x.py"
  print(1)
  ```

````text
```python
not an example
```
````

<!-- not run -->
```bash
exit 1
```
"""


def test_blocks_are_found_with_their_line_language_and_exit_code() -> None:
    assert blocks_of(PAGE, "page.md") == [
        Block("page.md:4", "console", "$ echo one; \\\n> exit 3\no…", 3),
        Block("page.md:12", "python", "print(1)", 0),
        Block("page.md:16", "text", "```python\nnot an example\n```", 0),
        Block("page.md:23", "text", "exit 1", 0),
    ]


def test_blocks_share_a_folder_only_on_a_page_that_says_so() -> None:
    tutorial, guide = ROOT / "docs/tutorial/pytest.md", ROOT / "docs/how-to/comparing.md"
    assert len(examples_of(tutorial)) == 1
    assert len(examples_of(tutorial)[0]) > 1
    assert {len(example) for example in examples_of(guide)} == {1}


def test_times_dates_and_widths_may_differ_and_nothing_else() -> None:
    promised = ("leap  ok  40.1 s  kept in runs/2026-11-17T11-26-55-x",)
    assert first_missing(promised, "  leap ok    2 ms kept in runs/2027-01-02T03-04-05-x") is None
    assert first_missing(promised, "leap ok 2 ms kept in runs/2027-01-02T03-04-05-y") == promised[0]
    assert first_missing(("score 0.50",), "score 0.51") == "score 0.50"


def test_a_block_that_keeps_its_promises_passes(runner: Runner) -> None:
    check_console(blocks_of(PAGE, "page.md")[0], runner)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("$ echo one\ntwo", "does not print 'two'"),
        ("$ printf 'one\\ntwo\\n'\ntwo\none", "does not print 'one'"),
        ("$ exit 4", "left with 4, not 0"),
        ("$ make no-such-target", "has no target"),
        ("$ make test\n12 passed", "cannot be promised"),
        ("just words", "begins with"),
    ],
)
def test_a_block_that_breaks_a_promise_fails(text: str, complaint: str, runner: Runner) -> None:
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        check_console(Block("page.md:1", "console", text, 0), runner)
