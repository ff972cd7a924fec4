"""Real runs of every door that take seconds, to be killed and starved: each needs no key and no network."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.environment import cache_folder
from bakeoff.record import Record
from bakeoff.storage.journal import read_journal

BAKEOFF = (str(Path(sys.executable).with_name("bakeoff")),)
_PROJECT = Path(__file__).resolve().parents[2]
_OUTPUT, _VIEWED, _VARIABLES = "output.txt", "view-output.txt", "variables.json"
_VIEW_SECONDS = 60.0
_BUNDLED = _PROJECT / "src" / "bakeoff" / "bundled"

_PROVIDER = """
import time


class Slow:
    def create_message(self, system: str, message: str) -> str:
        time.sleep(0.15)
        return '{"serverName": "kitchen", "toolName": "set_timer", "parameters": {"minutes": 12}}'
"""
_SUITE = """
testRound: 8
passThreshold: 0.5
concurrencyLimit: 2
modelsToTest: [slow:v1]
testCases:
  - name: timer
    prompt: Set a timer.
    expectedOutput: {serverName: kitchen, toolName: set_timer, parameters: {minutes: 12}}
  - {name: poem, prompt: Write a poem., expectedOutput: null}
mcpServers:
  - {name: kitchen, command: python, args: [kitchen.py]}
providers: {slow: "slow_provider:Slow"}
"""
_EVALS = """
import time

from bakeoff import EvalCase, eval_suite
from bakeoff.scorers import Contains


@eval_suite(data=[{"input": str(number), "expected": str(number)} for number in range(40)], scorers=[Contains()])
def test_echo(case: EvalCase) -> str:
    time.sleep(0.03)
    return f"It is {case.input}."
"""
_AGENT = """
name: sleeper
defaultProvider: none
install: {method: other}
command: [sh, -c, "sleep 0.1; (sleep 300 &) ; cat > double.py; echo done", "{instructions}"]
"""
_ASKING = f"""
{sys.executable} - <<'END'
import json, os, time, urllib.request
headers = {{"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}}
body = json.dumps({{"model": "tiny", "messages": [{{"role": "user", "content": "solve it"}}]}}).encode()
for _ in range(5):
    time.sleep(0.2)
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers))
open("double.py", "w").write("def double(number): return 2 * number")
END
"""
_METER = {"openai": {"env": {"OPENAI_BASE_URL": "{meterUrl}", "OPENAI_API_KEY": "{meterToken}"}}}


@dataclass(frozen=True, slots=True)
class Workload:
    """Hold a command of one door, how to set up the folder that it runs in, and which of its processes to kill."""

    name: str
    argv: tuple[str, ...]
    set_up: Callable[[Path], None]
    victims: tuple[str, ...]  # kinds of `processes.kind_of`
    resumes: bool = True
    beside: tuple[str, ...] = ()  # a server that runs beside it, in the same folder


def _mcp(folder: Path) -> None:
    shutil.copy(_BUNDLED / "mcp" / "servers" / "kitchen.py", folder)
    (folder / "slow_provider.py").write_text(_PROVIDER)
    (folder / "mcp-testing-framework.yaml").write_text(_SUITE)


def _exercises(folder: Path) -> None:
    from tests.doors.agents.small_tracks import DOUBLE, write_track

    write_track(folder / "track", double=DOUBLE)
    (folder / "sleeper.yaml").write_text(_AGENT)


def _metered(folder: Path) -> None:
    from tests.doors.agents.small_tracks import DOUBLE, agent_file, write_track

    write_track(folder / "track", double=DOUBLE)
    agent_file(folder, "asking", _ASKING, defaultProvider="openai", require=["OPENAI_API_KEY"], meter=_METER)


def _pytest(folder: Path) -> None:
    (folder / "test_evals.py").write_text(_EVALS)


def _embedded(folder: Path) -> None:
    shutil.copy(_BUNDLED / "mcp" / "servers" / "kitchen.py", folder)
    text = (_BUNDLED / "mcp" / "getting_started" / "mcp-testing-framework.yaml").read_text()
    (folder / "mcp-testing-framework.yaml").write_text(text)


def _nothing(folder: Path) -> None:
    del folder


_OURS = ("bakeoff", "fork server", "supervisor")
_EVALUATE = (*BAKEOFF, "mcp", "evaluate", "--exit-zero", "--no-open")
_AGENTS = (*BAKEOFF, "agents", "run", "--exercises", "track", "--jobs", "2", "--no-open", "--exit-zero")
MCP = Workload("mcp", _EVALUATE, _mcp, (*_OURS, "MCP server", "bwrap"))
EXERCISES = Workload(
    "exercises",
    (
        *(*_AGENTS, "--agent-file", "sleeper.yaml", "--agent", "sleeper", "--agent", "nop"),
        *("--rounds", "2", "--sandbox", "process"),
    ),
    _exercises,
    (*_OURS, "command"),
)
METERED = Workload(
    "metered agent",
    (*_AGENTS, "--agent-file", "asking.yaml", "--agent", "asking", "--rounds", "4", "--sandbox", "bwrap"),
    _metered,
    ("bakeoff", "meter", "supervisor", "bwrap"),
)
COMPONENTS = Workload(
    "components",
    (
        *(*BAKEOFF, "run", "--suite", "python-intervals", "--model", "nop", "--rounds", "3", "--sandbox", "process"),
        *("--jobs", "2", "--no-open", "--exit-zero"),
    ),
    _nothing,
    (*_OURS, "command"),
)
EVALS = Workload(
    "pytest",
    (sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_evals.py"),
    _pytest,
    ("pytest", "pytest worker"),
    resumes=False,
)
EMBEDDED = Workload("embedded model", _EVALUATE, _embedded, ("bakeoff", "embedded model"))
VIEWED = Workload(
    "view", _EVALUATE, _mcp, ("viewer", "bakeoff"), beside=(*BAKEOFF, "view", "--no-open", "--results", "results")
)
WORKLOADS = (MCP, EXERCISES, METERED, COMPONENTS, EVALS, EMBEDDED, VIEWED)


def environment(folder: Path) -> dict[str, str]:
    """Return an environment without keys, with a home and a temporary folder of its own and the cache of this machine.

    `python` is this one, because the servers of suites need our packages.
    """
    given = json.loads((folder / _VARIABLES).read_text())
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    own = {
        "HOME": str(_home(folder)),
        "TMPDIR": str(temporary(folder)),
        "BAKEOFF_CACHE": str(cache_folder()),
        "PATH": path,
    }
    return {**own, "LANG": os.environ.get("LANG", "C.UTF-8"), "PYTHONPATH": str(_PROJECT), "NO_COLOR": "1", **given}


def _home(folder: Path) -> Path:
    """Return the home for a folder. It lies beside the folder, because no sandbox shows a home or what is around it."""
    return folder.with_name(f"{folder.name}-home")


def temporary(folder: Path) -> Path:
    """Return the folder for temporary files of everything that runs in a folder."""
    return folder / "tmp"


def prepare(workload: Workload, folder: Path, env: Mapping[str, str] | None = None) -> Path:
    """Return the folder, set up for the workload. All commands in it get the variables."""
    for made in (_home(folder), temporary(folder), folder / "results"):
        made.mkdir(parents=True)
    set_variables(folder, env or {})
    workload.set_up(folder)
    return folder


def set_variables(folder: Path, env: Mapping[str, str]) -> None:
    """Set the variables that later commands in the folder get."""
    (folder / _VARIABLES).write_text(json.dumps(dict(env)))


def start(
    argv: Sequence[str], folder: Path, *, into: str = _OUTPUT, before: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command. Its output goes to a file, so that no reader is needed. `before` runs in its process."""
    with (folder / into).open("ab") as output:
        return subprocess.Popen(
            list(argv), cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env=environment(folder), preexec_fn=before,
        )  # fmt: skip


def ended(argv: Sequence[str], folder: Path, seconds: float, before: Callable[[], None] | None = None) -> int | None:
    """Run a command to its end and return its exit code, or None if it hangs."""
    process = start(argv, folder, before=before)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def resume(run: Path, folder: Path, seconds: float) -> int | None:
    """Resume a run and return the exit code."""
    return ended((*BAKEOFF, "resume", str(run), "--exit-zero"), folder, seconds)


@contextlib.contextmanager
def provider() -> Iterator[dict[str, str]]:
    """Serve a provider on loopback, and yield the variables that lead to it."""
    from tests.doors.agents.speaking_provider import SpeakingProvider

    with SpeakingProvider() as speaking:
        yield {"OPENAI_API_KEY": "sk-none-0123456789abcdef", "OPENAI_BASE_URL": f"{speaking.url}/v1"}


class Viewer:
    """The server that runs beside a workload, if it has one."""

    def __init__(self, workload: Workload, folder: Path) -> None:
        self._argv, self._folder = workload.beside, folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Viewer":
        if self._argv:
            (self._folder / _VIEWED).unlink(missing_ok=True)
            self._process = start(self._argv, self._folder, into=_VIEWED)
            self._page()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_VIEW_SECONDS)

    def problems(self, *, restart: bool) -> list[str]:
        """Say what is wrong with its first page, after a restart if it was killed."""
        if self._process is None:
            return []
        if restart:
            self._process.wait(_VIEW_SECONDS)
            self.__enter__()
        runs = [run.name for run in run_folders(self._folder)]
        return [f"the viewer does not show {name}" for name in runs if name not in self._page(f"runs/{name}")]

    def _page(self, path: str = "") -> str:
        deadline, file = time.monotonic() + _VIEW_SECONDS, self._folder / _VIEWED
        while not (address := re.search(r"http://\S+\n", file.read_text())) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert address, f"the viewer does not start: {file.read_text()}"
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(), urllib.request.ProxyHandler({}))
        browser.open(address[0].strip(), timeout=_VIEW_SECONDS).close()  # gives the cookie
        with browser.open(address[0].partition("?")[0] + path, timeout=_VIEW_SECONDS) as answer:
            page: str = answer.read().decode()
            return page


def output(folder: Path) -> str:
    """Return what all commands in the folder have printed."""
    return "".join(path.read_text(errors="replace") for path in sorted(folder.glob(f"*{_OUTPUT}")))


def run_folders(folder: Path) -> list[Path]:
    """Return the run folders with a journal."""
    return sorted(path.parent for path in (folder / "results" / "runs").glob("*/journal.jsonl"))


def records(run: Path) -> Iterator[Record]:
    """Yield the records in the journal of a run."""
    return (entry for entry in read_journal(run / "journal.jsonl") if isinstance(entry, Record))


def finished(run: Path) -> Counter[tuple[str, str, int]]:
    """Return how often each trial was recorded with a verdict that counts, and so is never tried again."""
    counted = [record for record in records(run) if record.verdict.value in ("pass", "fail", "timeout", "recorded")]
    return Counter((record.case, record.subject, record.round) for record in counted)


def planned(run: Path) -> int:
    """Return how many trials the plan of a run has."""
    plan: Mapping[str, object] = json.loads((run / "plan.json").read_text())
    cases, subjects = plan["cases"], plan["subjects"]
    assert isinstance(cases, list)
    assert isinstance(subjects, list)
    return len(cases) * len(subjects) * int(str(plan["rounds"]))
