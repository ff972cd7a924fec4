"""A track's own command decides, and our own runner confirms it with perturbed tests."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bakeoff.grading.cases import GradedCase, graded_case, toolchain_for
from bakeoff.grading.grades import Grade, grade_answer
from bakeoff.grading.references import REFERENCES, OpenReferences
from bakeoff.plan import Case, Grading
from bakeoff.sandbox import choose_sandbox

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

TEST = """from double import double

def test_doubles():
    assert double(4) == 8

def test_doubles_more():
    assert double(7) == 14

def test_doubles_text():
    assert double("a") == "aa"

def test_doubles_nothing():
    assert double(0) == 0
"""
RIGHT = "def double(x):\n    return x * 2\n"
WRONG = "def double(x):\n    return x * 7\n"
HIDES = "import __main__\nif not hasattr(__main__, 'tell'):\n"
PATCH = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
FORGERIES = {
    "patches pytest everywhere": PATCH,
    "patches pytest where the command runs": HIDES + "".join(f"    {line}\n" for line in PATCH.splitlines()),
    "ends with 0": "import os\nos._exit(0)\n",
    "writes the report": """import os, re
options = os.environ.get("PYTEST_ADDOPTS", "")
if "--junitxml=" in options:
    names = ["test_doubles", "test_doubles_more", "test_doubles_text", "test_doubles_nothing"]
    cases = "".join(f'<testcase classname="double_test" name="{name}"/>' for name in names)
    open(options.removeprefix("--junitxml="), "w").write(f"<testsuite>{cases}</testsuite>")
    os._exit(0)
""",
}

REMEMBERS = """import hashlib, inspect, socket
import _pytest.python
import __main__

def port(item):
    text = item.name + inspect.getsource(item.obj)
    return {base} + int.from_bytes(hashlib.md5(text.encode()).digest()[:2]) % 4000

def listen(number):
    server = socket.socket()
    server.bind(("127.0.0.1", number))
    server.listen()
    return server

def leave(number):
    server = listen(number)
    client = socket.create_connection(("127.0.0.1", number))
    server.accept()[0].close()  # who closes first keeps the port for a minute
    client.close()
    server.close()

def runtest(item):
    if not hasattr(__main__, "tell"):
        return leave(port(item))
    try:
        listen(port(item)).close()
    except OSError:
        return
    assert False, "the command never showed this form"

_pytest.python.Function.runtest = runtest
"""


def exercise(command: str) -> GradedCase:
    settings = Grading(
        runner="command",
        solution=("double.py",),
        tests=("double_test.py",),
        seconds=60.0,
        track="python",
        command=(command,),
    )
    hidden = {"double_test.py": TEST}
    return graded_case(Case(id="double", prompt="?", hidden=hidden, reference={"double.py": RIGHT}, grading=settings))


CASE = exercise("python3 -m pytest -q")


@asynccontextmanager
async def opened_in(sandbox: str, folder: Path) -> AsyncIterator[Mapping[str, Any]]:
    toolchain = toolchain_for(CASE.settings, lambda: choose_sandbox(sandbox))
    async with toolchain.open() as opened:
        yield {toolchain.key: opened, REFERENCES: OpenReferences(folder, "bakeoff verify")}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def resources(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mapping[str, Any]]:
    async with opened_in("auto", tmp_path_factory.mktemp("references")) as opened:
        yield opened


async def grade(resources: Mapping[str, Any], solution: str) -> Grade:
    return await grade_answer(CASE, {"double.py": solution}, resources)


async def test_a_right_solution_passes_the_tests_of_the_command(resources: Mapping[str, Any]) -> None:
    found = await grade(resources, RIGHT)
    assert found.ok, found.summary()
    assert sorted(found.passed)[0] == "double_test > test_doubles"


async def test_a_wrong_solution_fails_in_the_command(resources: Mapping[str, Any]) -> None:
    found = await grade(resources, WRONG)
    assert (found.ok, found.passed.total(), found.problem) == (False, 1, None)


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forgery_is_not_confirmed(resources: Mapping[str, Any], name: str) -> None:
    found = await grade(resources, FORGERIES[name] + WRONG)
    assert not found.ok
    assert found.passed.total() == 0, found.summary()


async def test_what_the_command_shows_comes_too_late_for_the_runs_with_twins(tmp_path: Path) -> None:
    """In the `process` sandbox, ports on loopback outlive a run."""
    base = 20_000 + os.getpid() % 8_000
    async with opened_in("process", tmp_path) as resources:
        found = await grade(resources, REMEMBERS.format(base=base) + WRONG)
    assert not found.ok
    assert found.passed.total() == 0, found.summary()
