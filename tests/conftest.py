"""What every test may ask for, and the rule that continuous integration skips nothing."""

import gc
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest

from bakeoff.engine.registry import Registry
from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import Phase, Record

from .warm_bakeoff import Bakeoff, WarmBakeoff, addresses_for_workers, close_servers, warm_bakeoff_of

TESTS = Path(__file__).parent
# Processor seconds of one unmarked test. Others are marked `journey` or `full`, in their files.
MAX_SECONDS = 2.0

PACKAGES = {"bwrap": "bubblewrap", "dockerd": "docker.io", "docker": "docker.io", "chromium": "chromium", "git": "git"}


# How fast a busy machine makes examples says nothing about the code.
hypothesis.settings.register_profile("any load", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("any load")


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts what goes to the background with Ctrl-C switched off, and children inherit that.

    Runs of tests are remembered in a folder of their own, which all workers share.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        state = tempfile.TemporaryDirectory(prefix="bakeoff-state-")
        os.environ["XDG_STATE_HOME"] = state.name
        config.add_cleanup(state.cleanup)
    if os.environ.get("TERM") == "dumb":  # which has no progress bars; programs that tests start get a terminal
        os.environ["TERM"] = "xterm"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each worker of xdist what the workers share."""
    node.workerinput["warm_servers"] = addresses_for_workers(node.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    close_servers(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among a million objects of imported modules, neither now nor in any test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def needs_program() -> Callable[[str], str]:
    """`needs_program("bwrap")` gives the program's path, or skips and says what to type."""

    def find(program: str) -> str:
        found = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
        if found is None:
            pytest.skip(f"{program} is not here: apt-get install {PACKAGES.get(program, program)}")
        return found

    return find


def _no_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a skip a failure when BAKEOFF_NO_SKIP=1; an expected failure is not a skip."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("BAKEOFF_NO_SKIP") == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped with BAKEOFF_NO_SKIP=1, but: {reason}"


_SECONDS = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the processor time of a test, with that of the processes that it waited for."""
    before = _processor_seconds()
    try:
        return (yield)
    finally:
        item.stash[_SECONDS] = _processor_seconds() - before


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) + WarmBakeoff.processor_seconds


def _too_long(item: pytest.Item, report: pytest.TestReport) -> None:
    """Fail an unmarked test that takes too long.

    Coverage and a busy machine, whose programs share caches, make all tests slower: nothing is judged beside them.
    """
    free = any(item.get_closest_marker(mark) for mark in ("journey", "full"))
    free = free or coverage.Coverage.current() is not None or os.getloadavg()[0] > 3 * (os.cpu_count() or 1)
    seconds = item.stash.get(_SECONDS, 0.0)
    if report.when == "call" and report.passed and not free and seconds > MAX_SECONDS:
        report.outcome = "failed"
        report.longrepr = f"took {seconds:.1f} processor seconds: mark it `journey` or `full`, or make it faster"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _no_skip(report)
    _too_long(item, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _no_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests marked `unwatched` repeat the same lines a million times: coverage would learn nothing and take minutes."""
    stopped: list[coverage.Coverage] = []
    if item.get_closest_marker("unwatched"):
        # There may be two: as any process, a worker is watched from its start, and then by the plugin.
        while (watching := coverage.Coverage.current()) is not None:
            watching.stop()
            stopped.insert(0, watching)
    try:
        return (yield)
    finally:
        for watching in stopped:
            watching.start()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all workers of this test run; `made_once.py` fills it."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def answered_once(shared_folder: Path) -> dict[str, str]:
    """An environment in which the embedded model answers each question once, for all workers of this test run."""
    return {"BAKEOFF_REPLAY": "auto", "BAKEOFF_RECORDINGS": str(shared_folder / "recordings")}


@pytest.fixture(scope="session")
def warm_bakeoff(pytestconfig: pytest.Config) -> Iterator[WarmBakeoff]:
    with warm_bakeoff_of(pytestconfig, "commands") as warm:
        yield warm


@pytest.fixture
def environment() -> dict[str, str]:
    """Return what the commands of a module find in their environment beside what is there."""
    return {}


@pytest.fixture
def bakeoff(
    tmp_path: Path, environment: dict[str, str], warm_bakeoff: WarmBakeoff, pytestconfig: pytest.Config
) -> Bakeoff:
    """Calls `bakeoff …` in the folder the test went to, or else in its own, and gives what came out."""
    # The tests may run on a machine of GitHub's, where commands do more than on a user's.
    dropped = ("FORCE_COLOR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")

    def call(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        inherited = {name: value for name, value in os.environ.items() if name not in dropped}
        folder = tmp_path if Path.cwd() == pytestconfig.invocation_params.dir else Path.cwd()
        return warm_bakeoff.run(*words, cwd=folder, env={**inherited, "NO_COLOR": "1", **environment, **more})

    return call


@pytest.fixture
def make_record() -> Callable[..., Record]:
    """A finished trial; give only what matters to the test."""

    def make(**given: Any) -> Record:
        usual = {"case": "c", "subject": "s", "round": 0, "attempt_key": "a" * 32, "score_key": "b" * 32}
        return Record(**{**usual, "started": 1.5, "threshold": 1.0, "attempt": Phase(seconds=0.25), **given})

    return make


@pytest.fixture
def carry_out(tmp_path: Path) -> Callable[..., Awaitable[list[Record]]]:
    """Run a plan to its end in a folder of the test's own; options are those of `RunOptions`."""

    async def carry(
        plan: Plan, *, registry: Registry | None = None, control: RunControl | None = None, **options: Any
    ) -> list[Record]:
        chosen = RunOptions(
            **{"results": tmp_path / "results", "backoff_seconds": 0.0, "sandbox": "process", **options}
        )
        return [record async for record in run(plan, chosen, registry=registry, control=control)]

    return carry


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 256 kB."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or umount is None:
        pytest.skip("a full disk needs root and mount: run the tests as root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=False).returncode:
        pytest.skip("a full disk needs a machine on which root may mount: not in this container")
    yield disk
    subprocess.run([umount, "--lazy", disk], check=True)
