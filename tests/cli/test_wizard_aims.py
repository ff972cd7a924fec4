"""Bare `bakeoff` in a real terminal: the aims that it offers, and where each leads."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..warm_bakeoff import Bakeoff
from .wizard_terminal import CTRL_C, CTRL_D, DOWN, ENTER, ESC, UP, Terminal

pytestmark = pytest.mark.full

CHOOSE = """
import sys
from pathlib import Path
from bakeoff.cli.wizard import choose_aim

words = choose_aim(Path("results"))
print("CHOSEN", words)
sys.exit(0 if words else 130)
"""

Choose = Callable[..., Terminal]


@pytest.fixture
def choose(tmp_path: Path) -> Iterator[Choose]:
    opened: list[Terminal] = []
    unwanted = ("CI", "COLUMNS", "LINES")  # the terminal's own size counts
    environment = {name: value for name, value in os.environ.items() if name not in unwanted} | {"NO_COLOR": "1"}

    def start(columns: int = 100, words: tuple[str, ...] = ("-c", CHOOSE)) -> Terminal:
        opened.append(Terminal([sys.executable, *words], tmp_path, environment, columns))
        return opened[-1].__enter__()

    yield start
    for terminal in opened:
        terminal.__exit__()


def make_runs(folder: Path, *names: str) -> None:
    for name in names:
        run = folder / "results" / "runs" / name
        run.mkdir(parents=True)
        (run / "plan.json").write_text("{}")


def test_everything_else_is_in_the_help_and_the_lines_fit_the_terminal(choose: Choose) -> None:
    terminal = choose(60)
    terminal.answer("Something else: all commands", UP, ENTER)
    terminal.sees("bakeoff --help\n\nCHOSEN ['--help']")
    assert terminal.ends() == 0
    aims = terminal.text.partition("all commands")[0]
    assert max(map(len, aims.splitlines())) <= 60


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D, ESC])
def test_leaving_the_first_question_is_130_in_one_line(choose: Choose, key: str) -> None:
    terminal = choose()
    terminal.answer("Something else", UP, key)
    terminal.sees("cancelled; nothing was run\nCHOSEN None")
    assert terminal.ends() == 130
    assert terminal.is_as_before


def test_bare_bakeoff_in_a_terminal_asks_what_to_find_out(choose: Choose) -> None:
    terminal = choose(words=("-m", "bakeoff"))
    terminal.answer("? What do you want to find out?", CTRL_C)
    assert terminal.ends() == 130
    assert "recent runs" not in terminal.text


def test_an_aim_becomes_a_command_that_is_shown(choose: Choose) -> None:
    terminal = choose(words=("-m", "bakeoff"))
    terminal.answer("Do models understand my MCP server?", DOWN, DOWN, DOWN, ENTER)
    terminal.sees("bakeoff init mcp\n")
    terminal.sees("bakeoff mcp evaluate")
    assert terminal.ends() == 0


def test_what_is_here_is_evaluated_instead_of_written_again(choose: Choose, tmp_path: Path) -> None:
    (tmp_path / "mcp-testing-framework.yaml").write_text("")
    terminal = choose()
    terminal.answer("Do models understand", DOWN, DOWN, DOWN, ENTER)
    terminal.answer("? Start? Models may cost money", ENTER)
    terminal.sees("cancelled; nothing was run\nCHOSEN None")
    assert terminal.ends() == 130
    again = choose()
    again.answer("Do models understand", DOWN, DOWN, DOWN, ENTER)
    again.answer("? Start? Models may cost money", "y", ENTER)
    again.sees("CHOSEN ['mcp', 'evaluate']")
    assert again.ends() == 0


def test_recent_runs_stand_above_the_question_and_a_broken_one_is_said_to_be(choose: Choose, tmp_path: Path) -> None:
    make_runs(tmp_path, *(f"2026-01-0{day}-x" for day in (1, 2, 3, 4)))
    terminal = choose()
    terminal.answer("Look at past runs in the browser", CTRL_C)
    assert terminal.ends() == 130
    listed = [line.split()[0] for line in terminal.text.splitlines() if "cannot be read" in line]
    assert listed == ["2026-01-04-x", "2026-01-03-x", "2026-01-02-x"]


def test_without_a_terminal_bare_bakeoff_prints_help_and_asks_nothing(bakeoff: Bakeoff) -> None:
    done = bakeoff()
    assert done.returncode == 2
    assert "Usage: bakeoff" in done.stdout + done.stderr
    assert "What do you want" not in done.stdout + done.stderr
