"""What bare `bakeoff` offers, in a real terminal."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer.main

from bakeoff.cli.main import app

from ..warm_bakeoff import Bakeoff
from .wizard_terminal import CTRL_C, CTRL_D, DOWN, ENTER, ESC, UP, Terminal

CHOOSE = """
import sys
from pathlib import Path
import typer.main
from bakeoff.cli.main import app
from bakeoff.cli.welcome import choose_aim

words = choose_aim(typer.main.get_command(app), Path("results"))
print("CHOSEN", words)
sys.exit(0 if words else 130)
"""

Choose = Callable[..., Terminal]


@pytest.fixture
def choose(tmp_path: Path) -> Iterator[Choose]:
    opened: list[Terminal] = []
    unwanted = ("CI", "COLUMNS", "LINES")  # the terminal's own size counts
    environment = {name: value for name, value in os.environ.items() if name not in unwanted} | {"NO_COLOR": "1"}

    def start(columns: int = 100, words: tuple[str, ...] = ("-c", CHOOSE), *, commands: bool = True) -> Terminal:
        opened.append(Terminal([sys.executable, *words], tmp_path, environment, columns))
        terminal = opened[-1].__enter__()
        if commands:
            terminal.answer("Something else: all commands", UP, ENTER)
        return terminal

    yield start
    for terminal in opened:
        terminal.__exit__()


def make_runs(folder: Path, *names: str) -> None:
    for name in names:
        run = folder / "results" / "runs" / name
        run.mkdir(parents=True)
        (run / "plan.json").write_text("{}")


def offered(terminal: Terminal) -> list[str]:
    menu = terminal.text.partition("What would you like to do?")[2].splitlines()[1:]
    return [line.removeprefix(" › ").split()[0] for line in menu if line.strip()]


def test_the_jobs_are_the_commands_there_are_and_the_usual_ones_come_first(choose: Choose, tmp_path: Path) -> None:
    make_runs(tmp_path, "one")
    terminal = choose()
    terminal.sees("\n   doctor")
    jobs = offered(terminal)
    terminal.answer("how to get it", ENTER)
    terminal.sees(f"bakeoff {jobs[0]}\n\nCHOSEN ['{jobs[0]}'")
    assert terminal.ends() == 0
    commands = getattr(typer.main.get_command(app), "commands", {})
    assert set(jobs) == {name for name, command in commands.items() if not command.hidden}
    assert jobs.index("demo") < jobs.index("compare") < jobs.index("export") < jobs.index("doctor")


def test_without_results_only_what_needs_none_is_offered(choose: Choose) -> None:
    terminal = choose(columns=60)
    terminal.sees("\n   doctor")
    aims, _, menu = terminal.text.partition("? What would you like to do?")
    jobs = offered(terminal)
    terminal.answer("", CTRL_C)
    assert terminal.ends() == 130
    assert "demo" in jobs
    assert not {"view", "compare", "runs", "resume"} & set(jobs)
    first = aims.partition("all commands")[0]  # the next lines of the transcript overwrite these
    assert max(map(len, [*first.splitlines(), *menu.splitlines()])) <= 60


def test_a_group_of_commands_is_asked_into_and_what_cannot_be_left_out_is_asked_for(
    choose: Choose, tmp_path: Path
) -> None:
    terminal = choose()
    terminal.sees("\n   doctor")
    steps = offered(terminal).index("models")
    terminal.answer("", *[DOWN] * steps, ENTER)
    terminal.answer("? bakeoff models", DOWN, ENTER)
    terminal.answer("? Names", ENTER)
    terminal.answer("this is required", "openai:gpt-5 oracle", ENTER)
    terminal.sees("CHOSEN ['models', 'prices', 'openai:gpt-5', 'oracle']")
    assert terminal.ends() == 0


def test_runs_to_compare_are_picked_newest_first(choose: Choose, tmp_path: Path) -> None:
    make_runs(tmp_path, "2026-01-01-a", "2026-01-02-b")
    terminal = choose()
    terminal.sees("\n   doctor")
    terminal.answer("", *[DOWN] * offered(terminal).index("compare"), ENTER)
    terminal.answer("? Baseline", DOWN, ENTER)
    terminal.answer("the same run: compare two of its subjects", DOWN, ENTER)
    terminal.sees("CHOSEN ['compare', '2026-01-01-a', '2026-01-02-b']")
    assert terminal.ends() == 0


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D, ESC])
def test_leaving_the_first_question_is_130_in_one_line(choose: Choose, key: str) -> None:
    terminal = choose(commands=False)
    terminal.answer("Something else", UP, key)
    terminal.sees("cancelled; nothing was run\nCHOSEN None")
    assert terminal.ends() == 130
    assert terminal.is_as_before


def test_bare_bakeoff_in_a_terminal_asks_what_to_find_out(choose: Choose) -> None:
    terminal = choose(words=("-m", "bakeoff"), commands=False)
    terminal.answer("? What do you want to find out?", CTRL_C)
    assert terminal.ends() == 130
    assert "recent runs" not in terminal.text


def test_an_aim_becomes_a_command_that_is_shown(choose: Choose) -> None:
    terminal = choose(words=("-m", "bakeoff"), commands=False)
    terminal.answer("Do models understand my MCP server?", DOWN, DOWN, DOWN, ENTER)
    terminal.sees("bakeoff init mcp\n")
    terminal.sees("bakeoff mcp evaluate")
    assert terminal.ends() == 0


def test_what_is_here_is_evaluated_instead_of_written_again(choose: Choose, tmp_path: Path) -> None:
    (tmp_path / "mcp-testing-framework.yaml").write_text("")
    terminal = choose(commands=False)
    terminal.answer("Do models understand", DOWN, DOWN, DOWN, ENTER)
    terminal.sees("CHOSEN ['mcp', 'evaluate']")
    assert terminal.ends() == 0


def test_recent_runs_stand_above_the_question_and_a_broken_one_is_said_to_be(choose: Choose, tmp_path: Path) -> None:
    make_runs(tmp_path, *(f"2026-01-0{day}-x" for day in (1, 2, 3, 4)))
    terminal = choose(commands=False)
    terminal.answer("Look at past runs in the browser", CTRL_C)
    assert terminal.ends() == 130
    listed = [line.split()[0] for line in terminal.text.splitlines() if "cannot be read" in line]
    assert listed == ["2026-01-04-x", "2026-01-03-x", "2026-01-02-x"]


def test_without_a_terminal_bare_bakeoff_prints_help_and_asks_nothing(bakeoff: Bakeoff) -> None:
    done = bakeoff()
    assert done.returncode == 2
    assert "Usage: bakeoff" in done.stdout + done.stderr
    assert "What would you like" not in done.stdout + done.stderr
