"""Servers for the tests: our own misbehaving ones, and two real ones that are fetched once into a cache folder."""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from bakeoff.mcp import HubLimits, McpHub, OpenHub, ServerSpec
from bakeoff.sandbox.supervisor_client import kernel_means

SERVERS = Path(__file__).with_name("servers")
EVERYTHING = "@modelcontextprotocol/server-everything"
EVERYTHING_VERSION = "2026.8.31"
TIME = ("mcp-server-time==2026.10.19", "tzlocal==5.4.5", "tzdata")
QUICK = HubLimits(startup_seconds=10.0, call_seconds=10.0, close_seconds=0.5)

Raw = Callable[..., ServerSpec]
Opening = Callable[..., AbstractAsyncContextManager[OpenHub]]


@pytest.fixture
def raw() -> Raw:
    """`raw("crash")` is the server of servers/raw.py with that behaviour."""

    def make(
        behaviour: str = "well-behaved", *arguments: str | Path, name: str = "raw", **fields: object
    ) -> ServerSpec:
        words = (str(SERVERS / "raw.py"), behaviour, *map(str, arguments))
        if fields.get("sandbox") != "none":
            fields.setdefault("writable", [path.parent for path in arguments if isinstance(path, Path)])
        return ServerSpec.model_validate({"name": name, "command": sys.executable, "args": words, **fields})

    return make


@pytest.fixture
def opened() -> Opening:
    """`async with opened(spec, …, startup_seconds=1) as hub`, with limits that do not keep a test waiting."""

    @asynccontextmanager
    async def make(*specs: ServerSpec, **limits: float) -> AsyncIterator[OpenHub]:
        async with McpHub(specs, QUICK.model_copy(update=limits)).open() as hub:
            yield hub

    return make


@pytest.fixture
def loopback() -> Iterator[Callable[[str], str]]:
    """`loopback("nameless")` is the address of servers/loopback.py with that behaviour."""
    with ExitStack() as stack:
        yield lambda behaviour: f"http://127.0.0.1:{stack.enter_context(loopback_server(behaviour))}"


@contextmanager
def loopback_server(behaviour: str) -> Iterator[int]:
    argv = [sys.executable, str(SERVERS / "loopback.py"), behaviour]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def below(pid: int) -> set[int]:
    """The processes that a process started, and those they started."""
    found: set[int] = set()
    queue = [pid]
    while queue:
        for listing in Path(f"/proc/{queue.pop()}/task").glob("*/children"):
            children = set(map(int, listing.read_text().split()))
            queue.extend(children)
            found |= children
    return found


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """Whatever a test did to its servers, none of their processes may outlive it."""
    kernel_means()  # starts the server that supervisors are forked from, which stays
    before = below(os.getpid())
    yield
    deadline = time.monotonic() + 60
    while (left := below(os.getpid()) - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == set()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BAKEOFF_CACHE, else a folder that the test processes of one run share."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder = Path(os.environ.get("BAKEOFF_CACHE") or shared) / "mcp-servers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fetched(folder: Path, argv: Callable[[Path], list[str]]) -> Path:
    """The folder that a command filled, now or earlier; one process fills it while the others wait."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            beside = Path(tempfile.mkdtemp(dir=folder.parent))
            done = subprocess.run(argv(beside), capture_output=True, text=True, timeout=240, check=False)
            if done.returncode:
                shutil.rmtree(beside)
                pytest.skip(f"{folder.name} cannot be fetched, connect to a network: {done.stderr.strip()[-300:]}")
            beside.rename(folder)
    return folder


@pytest.fixture(scope="session")
def everything(cache: Path, needs_program: Callable[[str], str]) -> tuple[str, str]:
    """The command line of server-everything, to which the transport is added."""
    npm, node = needs_program("npm"), needs_program("node")
    quiet = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    package = f"{EVERYTHING}@{EVERYTHING_VERSION}"
    folder = fetched(
        cache / f"everything-{EVERYTHING_VERSION}",
        lambda into: [npm, "install", *quiet, "--prefix", str(into), package],
    )
    return node, str(folder / "node_modules" / EVERYTHING / "dist" / "index.js")


@pytest.fixture(scope="session")
def time_server(cache: Path) -> ServerSpec:
    """mcp-server-time, which works with our SDK and so needs only its own files beside it."""
    folder = fetched(
        cache / TIME[0].replace("==", "-"),
        lambda into: [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(into), *TIME],
    )
    argv = ("-m", "mcp_server_time", "--local-timezone", "UTC")
    return ServerSpec(name="time", command=sys.executable, args=argv, env={"PYTHONPATH": str(folder)})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def everything_at(everything: tuple[str, str]) -> Iterator[Callable[[str], str]]:
    """`everything_at("sse")` starts the real server on a port of its own and gives its address."""
    with ExitStack() as stack:

        def start(transport: str) -> str:
            port = free_port()
            stack.enter_context(listening([*everything, transport], port))
            return f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"

        yield start


@contextmanager
def listening(argv: list[str], port: int) -> Iterator[None]:
    env = {"PATH": os.environ["PATH"], "PORT": str(port)}
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 30
            while not accepts(port):
                assert time.monotonic() < deadline, "the server does not listen"
                assert process.poll() is None, "the server ended"
                time.sleep(0.02)
            yield
        finally:
            process.kill()


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
