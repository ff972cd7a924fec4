"""The questions before a run, answered in a real terminal."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.components.plan import ComponentsRequest

from ..warm_bakeoff import PROGRAM
from .wizard_terminal import CTRL_C, CTRL_D, CTRL_L, CTRL_U, DOWN, ENTER, ESC, TAB, Terminal

pytestmark = pytest.mark.full

ASK = """
import sys
from pathlib import Path
from bakeoff.cli.wizard import ask_for_run
from bakeoff.doors.components.plan import ComponentsRequest

times, *given = sys.argv[1:]
for number in range(int(times)):
    defaults = ComponentsRequest(mcp=("http:https://mcp.example/mcp",)) if given else ComponentsRequest()
    answers = ask_for_run(defaults, lambda request: print("THE PLAN"), given=given)
    if answers is None:
        print(f"NONE {number}")
    else:
        Path("answers.out").write_text(f"{answers[1]} {answers[0].model_dump_json()}")
sys.exit(0 if answers else 130)
"""

LIST = {
    "data": [
        {"id": "anthropic/claude-sonnet-4", "type": "language", "pricing": {"input": "0.000004", "output": "0.00002"}},
        {"id": "acme/rocket", "type": "language", "pricing": {"input": "\x1b[31mcheap", "output": "0.1"}},
        {"id": "acme/\x1b[31mred", "type": "language"},
        {"id": "acme/painter", "type": "image"},
    ]
}

Open = Callable[..., Terminal]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Without keys, and not in CI."""
    unwanted = ("CI", "COLUMNS", "LINES")  # the terminal has a size of its own
    usual = {
        name: value for name, value in os.environ.items() if name not in unwanted and not name.endswith("_API_KEY")
    }
    return {**usual, "BAKEOFF_CACHE": str(tmp_path / "cache"), "NO_COLOR": "1"}


@pytest.fixture
def open_terminal(tmp_path: Path, environment: dict[str, str]) -> Iterator[Open]:
    """`open_terminal(command)`: a program in a terminal, in an empty folder."""
    opened: list[Terminal] = []
    (tmp_path / "work").mkdir()

    def start(*command: str, columns: int = 100, **more: str) -> Terminal:
        opened.append(Terminal(command, tmp_path / "work", {**environment, **more}, columns))
        return opened[-1].__enter__()

    yield start
    for terminal in opened:
        terminal.__exit__()


@pytest.fixture
def ask(open_terminal: Open) -> Open:
    """`ask(times, *given)`: the questions, as often as told; the last answers are left in a file."""

    def start(*words: str, **more: Any) -> Terminal:
        return open_terminal(sys.executable, "-c", ASK, *(words or ("1",)), **more)

    return start


def answers_in(folder: Path) -> tuple[int, ComponentsRequest]:
    jobs, _, request = (folder / "work" / "answers.out").read_text().partition(" ")
    return int(jobs), ComponentsRequest.model_validate_json(request)


# Every question there is, in its order, with an answer that leads to the next.
EVERY_QUESTION = (
    ("? Models", "oracle", " ", CTRL_U, "smol", " ", CTRL_U, "another", " ", ENTER),
    ("? Names", "openai:gpt-5", ENTER),
    ("? Compute costs", ENTER),
    ("? MCP server", DOWN, ENTER),
    ("? URL", ENTER),
    ("? Another server", DOWN, DOWN, ENTER),
    ("? Command", CTRL_U, "python3 'my server.py'", ENTER),
    ("? Another server", ENTER),
    ("? Several servers", DOWN, ENTER),
    ("? Also without", "y", ENTER),
    ("? May models run", "n", ENTER),
    ("? Trials at the same time", CTRL_U, "3", ENTER),
    ("? Start?", "y", ENTER),
)


def test_the_questions_lead_to_the_request_and_to_a_command_line_that_asks_nothing(ask: Open, tmp_path: Path) -> None:
    terminal = ask(columns=60)
    for question, *keys in EVERY_QUESTION:
        terminal.answer(question, *keys)
    assert terminal.ends() == 0
    jobs, request = answers_in(tmp_path)
    assert jobs == 3
    assert request == ComponentsRequest(
        models=("oracle", "local:smollm2", "openai:gpt-5"),
        mcp=("none", "http + stdio:python3 'my server.py'"),
        test_tool=False,
    )
    told = terminal.text.replace("\n", "")
    assert "? Models oracle, local:smollm2, another" in told
    assert "THE PLAN" in told
    assert "bakeoff run --model oracle --model local:smollm2 --model openai:gpt-5 --mcp none --mcp" in told
    assert "--no-test-tool --jobs 3" in told
    prices = [line.split() for line in terminal.text.splitlines() if "genai-prices" in line]
    assert prices[0][:3] == ["openai:gpt-5", "$1.25", "$10.00"], "each price says who says so"
    assert "oracle  " not in terminal.text.partition("USD per MTok")[2].partition("? Compute")[0], "it costs nothing"


def test_ctrl_c_leaves_at_every_question_and_so_do_ctrl_d_and_esc(ask: Open, tmp_path: Path) -> None:
    # The first four are of every kind.
    ways = [(number, key) for number in range(4) for key in (CTRL_C, CTRL_D, ESC)]
    terminal = ask(str(len(ways)))
    for left, (number, key) in enumerate(ways):
        for question, *keys in EVERY_QUESTION[:number]:
            terminal.answer(question, *keys)
        terminal.answer(EVERY_QUESTION[number][0], key)
        terminal.sees(f"cancelled; nothing was run\nNONE {left}\n")
        assert terminal.is_as_before, f"after {key!r} at {EVERY_QUESTION[number][0]!r}"
    assert terminal.ends() == 130
    assert not (tmp_path / "work" / "answers.out").exists()
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    "last", [(("? Trials", CTRL_U, "5", ENTER), ("? Start?", "n", ENTER)), (("? Trials", ESC),)], ids=["no", "esc"]
)
def test_one_who_does_not_start_leaves_without_a_run(ask: Open, last: tuple[tuple[str, ...], ...]) -> None:
    terminal = ask()
    for question, *keys in (("? Models", "nop", " ", ENTER), ("? MCP", ENTER), ("? May", "n", ENTER), *last):
        terminal.answer(question, *keys)
    assert terminal.ends() == 130
    terminal.sees("cancelled; nothing was run")


def test_what_the_command_line_says_is_not_asked(ask: Open, tmp_path: Path) -> None:
    terminal = ask("1", "mcp", "jobs", "test_tool")
    terminal.answer("? Models", "oracle", " ", ENTER)
    terminal.answer("? Start?", ENTER)
    assert terminal.ends() == 0
    assert answers_in(tmp_path) == (8, ComponentsRequest(models=("oracle",), mcp=("http:https://mcp.example/mcp",)))


def test_a_wrong_name_or_server_is_told_and_can_be_put_right(ask: Open, tmp_path: Path) -> None:
    terminal = ask(columns=60)
    wrong = (ENTER, CTRL_L)  # drawn anew, for otherwise only what differs from an earlier word would be drawn
    terminal.answer("? Models", ENTER)
    terminal.answer("select at least one", "another", " ", ENTER)
    terminal.answer("? Names", *wrong)
    terminal.answer("type at least one name", "gpt-5", *wrong)
    terminal.answer("gpt-5: write `provider:model`", CTRL_U, "nosuch:gpt-5", *wrong)
    terminal.answer("there is no provider nosuch", CTRL_U, "cheat, acme/rocket ,cheat", ENTER)
    terminal.answer("unknown price", "n", ENTER)
    terminal.answer("? MCP server", DOWN, ENTER)
    terminal.answer("? URL", CTRL_U, "localhost:8000", *wrong)
    terminal.answer("write it as https://host/path", CTRL_U, "http://localhost:8000/mcp", ENTER)
    terminal.answer("? Another server", DOWN, DOWN, ENTER)
    terminal.answer("? Command", CTRL_U, "a + b", *wrong)
    terminal.answer("separates servers", CTRL_U, "a 'b", *wrong)
    terminal.answer("close its quotes", "'", ENTER)
    terminal.answer("? Another server", ENTER)
    terminal.answer("? Several servers", ENTER)
    terminal.answer("? Also without", ENTER)
    terminal.answer("? May models", ENTER)
    terminal.answer("? Trials", CTRL_U, "0", *wrong)
    terminal.answer("from 1 to 256", CTRL_U, "256", ENTER)
    terminal.answer("? Start?", "y", ENTER)
    assert terminal.ends() == 0
    jobs, request = answers_in(tmp_path)
    assert (jobs, request.models, request.pricing) == (256, ("cheat", "acme/rocket"), False)
    assert request.mcp == ("none", "http:http://localhost:8000/mcp", "stdio:a 'b'")


def test_nothing_is_ticked_by_accident(ask: Open, tmp_path: Path) -> None:
    terminal = ask()
    terminal.answer("? Models", "nosuchmodel", " ", TAB, "\x01")
    terminal.answer("nothing found", ENTER)
    terminal.answer("select at least one", CTRL_U, ESC)
    terminal.sees("cancelled; nothing was run")
    assert terminal.ends() == 130


class Gateway(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(LIST).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def gateway() -> Iterator[dict[str, str]]:
    """A gateway that answers, and the environment in which it is asked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield {"AI_GATEWAY_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}", "AI_GATEWAY_API_KEY": "k" * 9}
        server.shutdown()
        thread.join()


def test_with_a_key_the_gateways_models_are_listed_with_their_prices(ask: Open, tmp_path: Path) -> None:
    with gateway() as reached:
        terminal = ask(**reached)
        terminal.sees("fetching the AI gateway")
        terminal.sees("anthropic/claude-sonnet-4  ($4.00 in, $20.00 out)")
        terminal.answer("acme/rocket", "sonnet", " ", CTRL_U, "rocket", " ", ENTER)
        terminal.sees("USD per MTok")
        terminal.sees("gateway 20")
        terminal.answer("? Compute", CTRL_C)
        assert terminal.ends() == 130
    assert "painter" not in terminal.text
    assert "red" not in terminal.text.partition("acme/rocket")[2].partition("another")[0], "its name is no name"
    assert "[31m" not in terminal.text.replace("\\x1b[31m", ""), "what a list says is shown, never obeyed"


def test_a_gateway_that_is_silent_is_not_waited_for(ask: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reached = {"AI_GATEWAY_BASE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "AI_GATEWAY_API_KEY": "k" * 9}
        terminal = ask(**reached)
        terminal.sees("the gateway takes too long; its models are not listed, but you can type their names")
        terminal.answer("? Models", CTRL_C)
        assert terminal.ends() == 130


def test_the_models_of_a_provider_whose_key_is_here_are_listed(ask: Open) -> None:
    terminal = ask(ANTHROPIC_API_KEY="k" * 9)
    terminal.answer("? Models", "anthropic:claude-sonnet-4-0")
    terminal.answer("($3.00 in, $15.00 out)", CTRL_C)
    assert terminal.ends() == 130
    assert "k" * 9 not in terminal.text


SUITE = {
    "suite.toml": 'runner = "pytest"\ncomponent = "answer.py"\nreference = "reference.py"\ntest = "test_answer.py"\n',
    "prompt.md": "Write a function `double` that doubles a number.\n",
    "reference.py": "def double(number):\n    return 2 * number\n",
    "test_answer.py": "from answer import double\n\n\ndef test_two():\n    assert double(2) == 4\n",
}


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / "suites" / "double"
    folder.mkdir(parents=True)
    for name, text in SUITE.items():
        (folder / name).write_text(text)
    return folder.parent


def test_a_run_is_asked_for_started_and_reported_in_one_terminal(
    open_terminal: Open, suites: Path, tmp_path: Path
) -> None:
    terminal = open_terminal(str(PROGRAM), "run", "--suites", str(suites), "--sandbox", "process", "--no-open")
    terminal.answer("? Models", "oracle", " ", CTRL_U, "nop", " ", ENTER)
    terminal.answer("? MCP server", ENTER)
    terminal.answer("? May models run", ENTER)
    terminal.answer("? Trials at the same time", ENTER)
    terminal.sees("2 trials = 1 case × 2 subjects × 1 round")
    terminal.sees("a single case cannot tell two subjects apart")
    terminal.sees("--model oracle --model nop")
    terminal.answer("? Start?", ENTER)
    assert terminal.ends() == 0, "controls decide no exit code"
    terminal.sees("100.0 %")
    results = tmp_path / "work" / "results"
    [page] = results.glob("runs/*/report.html")
    assert "double" in page.read_text()
    written = [json.loads(path.read_text()) for path in results.glob("result-*.json")]
    assert {result["metadata"]["model"]: result["metadata"]["unitTestTotals"]["score"] for result in written} == {
        "oracle": 100,
        "nop": 0,
    }


def test_leaving_a_run_exits_130_and_runs_nothing(open_terminal: Open, suites: Path, tmp_path: Path) -> None:
    terminal = open_terminal(str(PROGRAM), "run", "--suites", str(suites), "--jobs", "2")
    for question in ("? Models", "? MCP", "? May"):
        terminal.answer(question, *(["oracle", " "] if question == "? Models" else []), ENTER)
    terminal.answer("? Start?", CTRL_C)
    assert terminal.ends() == 130
    assert terminal.text.endswith("cancelled; nothing was run\n")
    assert terminal.is_as_before
    assert not (tmp_path / "work" / "results").exists()


def test_in_ci_nothing_is_asked_even_in_a_terminal(open_terminal: Open, suites: Path) -> None:
    terminal = open_terminal(str(PROGRAM), "run", "--suites", str(suites), CI="true")
    assert terminal.ends() == 2
    assert "no model was named: add --model" in terminal.text
    assert "?" not in terminal.text


def test_without_a_terminal_nothing_is_asked(suites: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [PROGRAM, "run", "--suites", suites],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "add --model" in done.stderr


def test_a_command_line_that_asks_nothing_does_not_load_what_asks() -> None:
    loaded = "import sys, bakeoff.cli.main, bakeoff.cli.run; print('questionary' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
