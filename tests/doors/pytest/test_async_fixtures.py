"""Suites with async fixtures of pytest-asyncio and anyio: their cases run on the loop of the fixtures."""

import pytest

from .small_project import DEAF, SmallProject, project

pytestmark = pytest.mark.full

pytest_plugins = ["pytester"]
__all__ = ["project"]

CLIENTS = """
class Client:
    def __init__(self):
        self.loop, self.asking, self.most = asyncio.get_running_loop(), 0, 0

    async def ask(self, question):
        assert asyncio.get_running_loop() is self.loop
        self.asking += 1
        self.most = max(self.most, self.asking)
        await asyncio.sleep(0.02)
        self.asking -= 1
        return f"<{question}>"

@OWN
async def own():
    return Client()

@SHARED
async def client():
    made = Client()
    yield made
    assert asyncio.get_running_loop() is made.loop
    assert 1 < made.most <= 3

@eval_suite(data=rows("a", "b"), scorers=[right])
async def test_own(case, own):
    return await own.ask(case.input)

@eval_suite(data=rows(*range(9)), scorers=[right], concurrency=3)
async def test_shared(case, client):
    print(f"asked {case.input}")
    return await client.ask("wrong" if case.input == 4 else case.input)

@eval_suite(data=rows("a"), scorers=[right])
def test_sync(case, client):
    assert client.most > 1
    return f"<{case.input}>"

@eval_suite(data=rows("slow", "quick"), scorers=[right], timeout=0.3)
async def test_slow(case, client):
    await asyncio.sleep(60 if case.input == "slow" else 0)
    return f"<{case.input}>"
"""


@pytest.mark.parametrize(
    ("mode", "workers"), [("auto", ()), ("strict", ()), ("auto", ("-p", "xdist", "-n", "2", "--dist", "loadfile"))]
)
def test_pytest_asyncio(project: SmallProject, mode: str, workers: tuple[str, ...]) -> None:
    ini = f"[pytest]\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n"
    project.path.joinpath("tox.ini").write_text(ini)
    own = "pytest.fixture" if mode == "auto" else "pytest_asyncio.fixture"
    shared = "pytest_asyncio.fixture(scope='module', loop_scope='module')"
    project.write("import pytest_asyncio\n" + CLIENTS.replace("@OWN", f"@{own}").replace("@SHARED", f"@{shared}"))
    seen = project.run_apart("-p", "pytest_asyncio.plugin", *workers)
    assert seen.counts() == {"passed": 12, "failed": 2}, seen.text
    seen.result.stdout.fnmatch_lines(["*test_shared?4?*", "*Captured stdout*", "asked 4", "*test_slow?slow?*"])
    assert "asked 5" not in seen.text
    assert "not finished after 0.3 s" in seen.text


DISTURBING = """
from bakeoff.scorers import Latency

@eval_suite(data=rows("blocks", *range(6)), scorers=[right, Latency(max_ms=1200)], timeout=1.5)
async def test_blocks(case, client):
    await asyncio.sleep(0.1)
    if case.input == "blocks":
        time.sleep(4)
    await asyncio.sleep(0.1)
    return f"<{case.input}>"
"""
ASYNCIO = """
import pytest_asyncio

@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def client():
    yield
"""
ANYIO = """
pytestmark = pytest.mark.anyio

@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"

@pytest.fixture(scope="session")
async def client():
    yield
"""


@pytest.mark.parametrize(("plugin", "fixture"), [("pytest_asyncio.plugin", ASYNCIO), ("anyio.pytest_plugin", ANYIO)])
def test_a_case_disturbs_no_other_on_their_loop_either(project: SmallProject, plugin: str, fixture: str) -> None:
    project.path.joinpath("tox.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = session\n")
    project.write(fixture + DISTURBING + DEAF.replace("FIXTURES", "case, client"))
    seen = project.run_apart("-p", plugin, "-W", "ignore:Unknown config option")
    assert seen.counts() == {"passed": 7, "failed": 2}, seen.text
    assert "test_blocks[blocks]: it blocked the event loop for " in seen.text
    assert "test_deaf[deaf]: it ignored its cancellation, and goes on in the background" in seen.text


def test_anyio(project: SmallProject) -> None:
    project.write(
        """
pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"
"""
        + CLIENTS.replace("@OWN", "@pytest.fixture").replace("@SHARED", "@pytest.fixture(scope='module')")
    )
    seen = project.run_apart("-p", "anyio.pytest_plugin")
    assert seen.counts() == {"passed": 12, "failed": 2}, seen.text
