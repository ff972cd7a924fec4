"""`bakeoff run` and `bakeoff verify` as someone types them."""

import json
import sys
from pathlib import Path

import pytest

from ...warm_bakeoff import Bakeoff
from .small_suites import ADDER, BUTTON, SHOUT, calling, scripted, write_suites
from .test_results_schema import READS

pytestmark = pytest.mark.journey

SERVER = """\
from mcp.server.mcpserver import MCPServer

server = MCPServer("{tool}")


@server.tool()
def {tool}(content: str) -> str:
    return "42"


server.run("stdio")
"""


def server_of(folder: Path, tool: str) -> str:
    (folder / f"{tool}.py").write_text(SERVER.format(tool=tool))
    return f"stdio:{sys.executable} {folder / tool}.py"


def test_a_run_ends_with_a_table_result_files_and_a_page(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER, shout=SHOUT)
    done = bakeoff("run", "--model", "oracle", "--model", "nop", "--no-open")
    assert done.returncode == 0, done.stderr  # controls decide no exit code
    assert "oracle" in done.stdout
    assert "100.0 %" in done.stdout
    results = sorted((tmp_path / "results").glob("result-*.json"))
    assert len(results) == 2
    assert not [error.message for path in results for error in READS.iter_errors(json.loads(path.read_text()))]
    metadata = {path.name.rpartition("-")[2]: json.loads(path.read_text())["metadata"] for path in results}
    assert metadata["oracle.json"]["unitTestTotals"]["score"] == 100
    assert metadata["nop.json"]["unitTestTotals"] == {"total": 3, "passed": 0, "failed": 3, "score": 0}
    (page,) = (tmp_path / "results" / "runs").glob("*/report.html")
    assert "adder: prompt" in page.read_text()


def test_suites_and_flags_say_what_is_run(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "elsewhere", adder=ADDER, shout=SHOUT)
    words = ("--suites", "elsewhere", "--suite", "shout", "--model", "oracle", "--rounds", "3", "--dry-run")
    done = bakeoff("run", *words)
    assert done.returncode == 0, done.stderr
    assert "3 trials = 1 case × 1 subject × 3 rounds" in done.stdout
    assert "nothing was run" in done.stdout
    assert not (tmp_path / "results").exists()


def test_the_tokens_of_a_run_and_of_a_reply_are_limited_by_different_options(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    done = bakeoff("run", "--model", "scripted:hi", "--max-tokens", "7", "--max-total-tokens", "9", "--dry-run")
    assert done.returncode == 0, done.stderr
    done = bakeoff("resume", "--max-tokens", "7")
    assert done.returncode == 2
    assert "error: no such option: --max-tokens" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no model was named: add --model, for instance --model local:smollm2"),
        (("--model", "gpt"), "'gpt' is not a model name"),
        (("--model", "oracle", "--suite", "addr"), "did you mean 'adder'?"),
        (("--model", "oracle", "--suites", "nowhere"), "suites folder nowhere cannot be read"),
        (("--model", "a/b", "--max-cost", "1", "--no-pricing"), "--max-cost needs prices"),
        (("--model", "scripted:hi", "--mcp", "ftp:x"), "'ftp:x' is not an MCP server"),
        (
            ("--model", "oracle", "--mcp", "stdio:/nowhere/server"),
            "nothing was run; `--mcp none` runs without a server",
        ),
        (("--model", "cheat:unheard-of"), "no attack 'unheard-of'"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_sentence(
    bakeoff: Bakeoff, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    done = bakeoff("run", *words)
    assert done.returncode == 2, done.stdout
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_server_that_hides_our_tool_or_cannot_start_ends_it_before_any_model_is_asked(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    shadow = server_of(tmp_path, "ResultWrite")
    done = bakeoff("run", "--model", "scripted:hi", "--mcp", shadow, "--mcp", "stdio:/no/such/server")
    assert done.returncode == 2
    assert "'ResultWrite' is offered by a built-in tool and by MCP server" in done.stderr
    assert "/no/such/server" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("tool", "ours"), [("resultwrite", "ResultWrite"), ("Test_component", "TestComponent")])
def test_a_server_with_a_tool_that_could_be_taken_for_ours_is_refused(
    bakeoff: Bakeoff, tmp_path: Path, tool: str, ours: str
) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    done = bakeoff("run", "--model", "scripted:hi", "--mcp", server_of(tmp_path, tool))
    assert done.returncode == 2
    assert f"the tool {tool!r} of MCP server" in done.stderr
    assert f"differs from the built-in {ours!r} in nothing but case" in " ".join(done.stderr.split())
    assert not (tmp_path / "results").exists()


def test_a_run_that_is_taken_up_again_leaves_one_set_of_files_and_new_pages(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    model = scripted(tmp_path / "model.json", [calling("ResultWrite", ADDER["reference.py"])])
    results = tmp_path / "results"
    bakeoff("run", "--model", model, "--rounds", "4", "--jobs", "1", "--no-open")
    first = sorted(results.glob("result-*"))
    (page,) = results.glob("runs/*/report.html")
    for made in (page, results / "index.html"):
        made.unlink()
    journal = page.with_name("journal.jsonl")
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])  # only its beginning: all is run again
    done = bakeoff("resume", "latest")
    assert done.returncode == 0, done.stderr
    assert sorted(results.glob("result-*")) == first
    assert len(first) == 8
    assert done.stderr.count("report.html") == 1
    assert page.exists()
    assert (results / "index.html").exists()
    page.unlink()
    assert bakeoff("rescore", "latest").returncode == 0
    assert page.exists()


def test_a_run_that_is_named_by_its_path_leaves_its_files_where_it_lies(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    bakeoff("run", "--model", "oracle", "--no-open", "--results", "elsewhere")
    (folder,) = (tmp_path / "elsewhere").glob("runs/*")
    done = bakeoff("resume", str(folder), "--no-open")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "results").exists()
    assert f"bakeoff runs show {folder.name} --results {tmp_path / 'elsewhere'}" in done.stdout + done.stderr


def test_with_and_without_a_server_are_two_subjects_that_are_compared(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER, shout=SHOUT)
    model = scripted(
        tmp_path / "model.json",
        [calling("lookup", "how", step=0), calling("ResultWrite", ADDER["reference.py"])],
    )
    words = ("--mcp", "none", "--mcp", server_of(tmp_path, "lookup"), "--no-open")
    done = bakeoff("run", "--model", model, *words)
    assert done.returncode == 1, done.stderr  # `shout` is not what the model wrote
    first, second = sorted((tmp_path / "results").glob("result-*.json"), key=lambda path: len(path.name))
    assert json.loads(first.read_text())["metadata"]["mcpEnabled"] is False
    metadata = json.loads(second.read_text())["metadata"]
    assert (metadata["mcpEnabled"], metadata["mcpTransportType"]) == (True, "StdIO")
    (page,) = (tmp_path / "results" / "runs").glob("*/report.html")
    assert "MCP on and off" in page.read_text()
    assert "0 / 2 / 0" in page.read_text(), "both did as well in both suites"
    steps = json.loads(second.read_text())["tests"][0]["steps"]
    assert "42" in json.dumps(steps[0])


def test_without_node_svelte_suites_are_left_out_with_the_way_out(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER, button=BUTTON)
    path = _without_node(tmp_path / "bin")
    done = bakeoff("run", "--model", "oracle", "--no-open", "--sandbox", "process", PATH=path)
    assert done.returncode == 0, done.stderr
    assert "left out: 1 suite for which Node is needed (button)" in done.stderr
    assert "install Node.js" in done.stderr
    alone = bakeoff("run", "--model", "oracle", "--suite", "button", "--sandbox", "process", PATH=path)
    assert alone.returncode == 2
    assert "install Node.js" in alone.stderr


def _without_node(folder: Path) -> str:
    """A PATH with what a shell has, but for Node."""
    folder.mkdir()
    for place in ("/bin", "/usr/bin"):
        for program in Path(place).iterdir():
            if program.name not in ("node", "nodejs", "npm", "npx") and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def test_verify_has_a_row_for_each_suite_and_fails_with_one_that_is_not_fit(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    done = bakeoff("verify")
    assert done.returncode == 0, done.stderr
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("adder")]
    assert row[1:6] == ["2", "2", "2/2", "0/2", "1/2"]
    assert row[-1] == "ok"
    write_suites(tmp_path / "tests", broken={**ADDER, "reference.py": ADDER["wrong.py"]})
    done = bakeoff("verify")
    assert done.returncode == 1
    assert "broken: the reference does not pass" in done.stdout
    assert "1 of 2 suites is fit for use" in done.stdout
