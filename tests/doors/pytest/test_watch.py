"""`pytest --eval-watch`: what changed and what failed is run again, and everything else is kept."""

import json
import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bakeoff.doors.pytest.rows import read_rows
from bakeoff.doors.pytest.watch import SUITE_FUNCTIONS, KeptTest, WatchState
from bakeoff.engine.reuse import CHANGED, CHANGED_FILE, NEW, NOT_PASSED
from bakeoff.engine.used_files import ROWS, ReadFiles, code_digest, imported_files
from bakeoff.engine.watch import ANYTHING, GONE, stale_users
from bakeoff.report.suites.eval_file import read_eval_file
from bakeoff.storage.run_folder import run_folders

from ...cli.wizard_terminal import CTRL_C, Terminal
from .small_project import PLUGIN, SmallProject, project

pytestmark = pytest.mark.full

pytest_plugins = ["pytester"]
__all__ = ["project"]

FILE = '''
"""Evals."""
from bakeoff import describe_eval, eval_suite
from app import ask

ROWS = [{"input": "a"}]
LIMIT = 3
pytestmark = []

def helper(x):
    return x[:LIMIT]

@eval_suite(data=ROWS, scorers=[len])
def test_one(case):
    return helper(ask(case.input))

test_two = describe_eval("two", data=[{"input": "b"}], task=ask, scorers=[len])
'''


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('"a"', '"b"', False),  # rows are compared for themselves
        ('[{"input": "b"}]', "[]", False),
        ("LIMIT = 3", "LIMIT = 3  # a comment", False),
        ("LIMIT = 3", "LIMIT = 4", True),
        ("return x", "return 2 * x", True),
        ("from app import ask", "from app2 import ask", True),
        ('"two", data', '"three", data', True),
        ("pytestmark = []", "pytestmark = [1]", True),
        ("task=ask", "task=len", True),
    ],
)
def test_the_code_of_a_test_file_is_compared_without_rows(old: str, new: str, changed: bool) -> None:
    assert (code_digest(FILE, SUITE_FUNCTIONS) != code_digest(FILE.replace(old, new), SUITE_FUNCTIONS)) is changed


IMPORTS = {
    "/p/test_a.py": {"/p/app.py", "/p/conftest.py"},
    "/p/test_b.py": {"/p/other.py", "/p/conftest.py"},
    "/p/test_c.py": {"/p/conftest.py", ANYTHING},
}
READS = {
    "/p/rows.jsonl": {ROWS},
    "/p/prompt.txt": {"/p/app.py"},
    "/p/b.txt": {"/p/test_b.py"},
    "/p/unknown.txt": {ANYTHING},
    "/p/plugin.txt": {"/p/plugin.py"},
}
A, B, C = IMPORTS


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ({"/p/rows.jsonl": "x"}, set()),
        ({"/p/app.py": "x"}, {A, C}),
        ({"/p/app.py": "x", "/p/rows.jsonl": "x"}, {A, C}),
        ({"/p/prompt.txt": "x"}, {A, C}),
        ({"/p/b.txt": "x"}, {B, C}),
        ({"/p/conftest.py": "x"}, {A, B, C}),
        ({"/p/test_a.py": "x"}, {C}),  # its own tests are compared one by one
        ({"/p/test_new.py": None}, {C}),
        ({"/p/app.py": GONE}, {A, C}),  # it is back
        ({"/p/sub/conftest.py": None}, None),
        ({"/p/unknown.txt": "x"}, {A, B, C}),
        ({"/p/plugin.txt": "x"}, {A, B, C}),
        ({"/p/server.py": "x"}, None),  # nobody imports it, so a test may run it as a program
    ],
)
def test_a_changed_file_makes_the_tests_stale_that_may_use_it(
    changed: Mapping[str, str | None], stale: set[str] | None
) -> None:
    state = WatchState().after({}, IMPORTS, READS)
    assert state.watched == {*IMPORTS, *READS, "/p/app.py", "/p/other.py", "/p/conftest.py"}
    assert stale_users(changed, state.uses) == stale


def test_files_that_earlier_cycles_used_stay_used() -> None:
    first = WatchState().after({}, IMPORTS, READS)
    second = first.after({}, {A: {"/p/new.py"}}, {})
    assert second.uses == {A: {"/p/new.py", *first.uses[A]}}
    assert second.watched == {*first.watched, "/p/new.py"}


class Item(NamedTuple):
    nodeid: str
    path: str = "/p/test.py"


def test_a_test_is_kept_only_if_it_passed_and_nothing_of_it_has_changed() -> None:
    tests = {"a": KeptTest(key="1"), "b": KeptTest(key="1", failed=True)}
    cycle = WatchState(number=2, stale=frozenset({"/p/stale.py"}), tests=tests)

    def why(item: Any, key: str = "1", cycle: WatchState = cycle) -> str | None:
        return cycle.why_stale(item, key)

    assert why(Item("a")) is None
    assert why(Item("a"), "2") == CHANGED
    assert why(Item("a", "/p/stale.py")) == CHANGED_FILE
    assert why(Item("b")) == NOT_PASSED
    assert why(Item("new")) == NEW
    assert why(Item("a"), cycle=cycle.model_copy(update={"stale": None})) == CHANGED_FILE


def test_imports_are_followed_also_where_a_function_makes_them(tmp_path: Path) -> None:
    sources = {
        "test_a": "import pkg.one\n",
        "pkg": "",
        "pkg.one": "def f():\n    from pkg import two\n",
        "pkg.two": "",
        "pkg.three": "",
        "test_b": "import importlib\nimportlib.import_module('pkg.three')\n",
        "test_c": "server = ['server.py']\n",
    }
    loaded = {}
    for name, source in sources.items():
        loaded[name] = str(tmp_path / f"{name}.py")
        Path(loaded[name]).write_text(source)
    assert imported_files(loaded["test_a"], loaded) == {loaded[name] for name in ("pkg", "pkg.one", "pkg.two")}
    assert imported_files(loaded["test_b"], loaded) == {ANYTHING}
    assert imported_files(loaded["test_c"], loaded) == {ANYTHING}


def test_a_file_belongs_to_the_module_that_reads_it(tmp_path: Path) -> None:
    for name in ("prompt.txt", "both.txt", "rows.jsonl", ".hidden"):
        (tmp_path / name).write_text('{"input": "a"}')
    (tmp_path / "cases").mkdir()
    module = tmp_path / "app.py"
    module.write_text("def read(path): return path.read_text()\ndef names(path): return list(path.iterdir())\n")
    names: dict[str, Any] = {}
    exec(compile(module.read_text(), str(module), "exec"), names)
    (tmp_path / "results" / "runs").mkdir(parents=True)
    (tmp_path / "results" / "runs" / "plan.json").touch()
    reads = ReadFiles([tmp_path], tmp_path / "results" / "runs", read_rows.__code__)
    try:
        for name in ("prompt.txt", "both.txt", ".hidden"):
            names["read"](tmp_path / name)
        names["names"](tmp_path / "cases")
        names["read"](tmp_path / "results" / "runs" / "plan.json")
        names["names"](tmp_path / "results" / "runs")
        names["names"](tmp_path / "results")
        (tmp_path / "both.txt").write_text("")
        read_rows("rows.jsonl", tmp_path)
        (tmp_path / "prompt.txt").read_text()
        assert list(tmp_path.iterdir())  # as pytest does
    finally:
        reads.stop()
    assert reads.found == {
        str(tmp_path / "prompt.txt"): {str(module), ANYTHING},
        str(tmp_path / "rows.jsonl"): {ROWS},
        str(tmp_path / "cases"): {str(module)},
    }


APP = """
from pathlib import Path
PROMPT = Path(__file__).with_name("prompt.txt")

def ask(question):
    PROMPT.read_text()
    return f"<{question}>"
"""
SUITES = """
from app import ask
from other import rows_of

test_file = describe_eval("file", data="rows.jsonl", task=ask, scorers=[right])
test_inline = describe_eval("inline", data=rows("c", "d"), task=lambda input: f"<{input}>", scorers=[right])

def test_plain():
    assert rows_of()
"""


def write_project(project: SmallProject) -> None:
    project.pytester.makeini("[pytest]\npythonpath = .\n")
    project.write(APP, "app.py", head="")
    project.write("def rows_of():\n    return [1]\n", "other.py", head="")
    project.write("", "prompt.txt", head="")
    write_rows(project, "<b>")
    project.write(SUITES, "test_a.py")
    project.write("test_other = describe_eval('other', data=rows('e'), task=lambda input: '<e>', scorers=[right])")


def write_rows(project: SmallProject, expected: str) -> None:
    rows = [{"input": "a", "expected": "<a>", "name": "a"}, {"input": "b", "expected": expected, "name": "b"}]
    project.write("\n".join(map(json.dumps, rows)), "rows.jsonl", head="")


def test_a_cycle_with_xdist_runs_only_what_is_needed_and_reports_everything(project: SmallProject) -> None:
    write_project(project)
    first, second = project.path / "first.json", project.path / "second.json"
    first.write_text(WatchState(number=1).model_dump_json())
    xdist = ("-p", "xdist", "-n", "2")
    seen = project.run_apart(f"--eval-watch-cycle={first}", *xdist, record=())
    assert seen.counts() == {"passed": 6}
    told = WatchState.model_validate_json(first.read_bytes())
    assert told.complete
    assert str(project.path / "rows.jsonl") in told.watched
    assert told.uses[str(project.path / "test_a.py")] >= {
        str(project.path / name) for name in ("app.py", "other.py", "prompt.txt", "tox.ini")
    }
    write_rows(project, "<?>")
    second.write_text(told.model_copy(update={"number": 2}).model_dump_json())
    seen = project.run_apart(f"--eval-watch-cycle={second}", *xdist, "--eval-json", "all.json", record=())
    assert seen.counts() == {"failed": 1}
    seen.result.stdout.fnmatch_lines(["watch: 5 results are kept from earlier cycles"])
    outcomes = {outcome.case: outcome.passed for outcome in read_eval_file(project.path / "all.json").outcomes}
    assert outcomes == {"a": True, "b": False, "c": True, "d": True, "e": True}
    run = run_folders(project.path / "results")[-1]
    plan = run.read_plan()
    assert {record.case for record in run.latest_records(plan)} == {case.id for case in plan.cases}
    assert len(plan.cases) == 5
    assert 'data-cycle="2"' in (project.path / "results" / "watch.html").read_text()


def test_watching_in_a_terminal(project: SmallProject) -> None:
    write_project(project)
    command = [sys.executable, "-m", "pytest", *PLUGIN, "--eval-watch", "-k", "not other"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    waiting = "Waiting for changes; Ctrl-C ends. Page: results/watch.html"
    with Terminal(command, project.path, environment) as terminal:
        terminal.sees("5 passed, 1 deselected")
        terminal.sees(waiting)
        write_rows(project, "<?>")
        terminal.sees("Changed: rows.jsonl")
        terminal.sees("test_a.py::test_file[b] FAILED 0.00")
        terminal.sees("1 failed, 5 deselected")
        terminal.sees(waiting)
        project.write(SUITES + "\ndef (\n", "test_a.py")
        terminal.sees("SyntaxError")
        terminal.sees(waiting)
        write_rows(project, "<b>")
        project.write(SUITES.replace('"c", "d"', '"c", "x"'), "test_a.py")
        terminal.sees("watch: 3 results are kept from earlier cycles")  # a, c and the plain test
        terminal.sees("2 passed")
        terminal.sees(waiting)
        assert (project.path / "results" / "watch.html.svg").exists()
        project.write("!", "prompt.txt", head="")
        terminal.sees("5 passed")
        terminal.answer(waiting, CTRL_C)
        assert terminal.ends() == 0
        assert "Traceback" not in terminal.text.partition("^C")[2]
    assert len(run_folders(project.path / "results")) == 1
    assert not (project.path / "results" / "watch.html.svg").exists()


def test_two_interrupts_end_a_cycle_at_once_and_without_a_traceback(project: SmallProject) -> None:
    slow = """
    import asyncio

    async def stubborn(input):
        print("started", flush=True)
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                print("cancelled", flush=True)

    test_slow = describe_eval("slow", data=rows("a"), task=stubborn, scorers=[right])
    """
    project.write(textwrap.dedent(slow))
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-s", "--eval-watch"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with Terminal(command, project.path, environment) as terminal:
        terminal.answer("started", CTRL_C)
        terminal.answer("cancelled", CTRL_C)
        assert terminal.ends() == 130
        assert "Traceback" not in terminal.text


def test_watching_refuses_what_needs_all_results_anew(project: SmallProject) -> None:
    project.write("")
    seen = project.run_apart("--eval-watch", "--eval-until-decided")
    assert seen.result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--eval-until-decided needs all anew" in seen.result.stderr.str()


def test_two_interrupts_at_once_end_the_watch_without_a_traceback(project: SmallProject) -> None:
    project.write("""
async def slow(input):
    print("started", flush=True)
    await asyncio.sleep(60)

test_slow = describe_eval("slow", data=rows("a"), task=slow, scorers=[right])
""")
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-s", "--eval-watch"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with Terminal(command, project.path, environment) as terminal:
        terminal.answer("started", CTRL_C, CTRL_C)
        assert terminal.ends() != 0
        assert "Traceback" not in terminal.text
        assert "Waiting for changes" not in terminal.text
