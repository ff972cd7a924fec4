"""Evals as tests against bare pytest, DeepEval and vitest-evals doing the same work, on this machine, now.

Peers are installed once, apart from this project, into the cache; one that cannot be had is said to be missing.
"""

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.environment import cache_folder
from bakeoff.protocols import ScoreInput
from bakeoff.record import ToolCall
from bakeoff.scorers import ToolCalls
from bench.peers.install import install_peer

TRIVIAL = 10_000
SLEEPING, PAUSE, AT_ONCE = 500, 0.05, 50
REPEATS = 3
STARTS = 7  # of one test
QUIET = {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0", "NO_COLOR": "1", "CI": "1"}

WANTED_TIME, WANTED_MEMORY = 0.6, 1.2  # of 10,000 trivial cases, at most, against bare pytest
WANTED_BELOW = 1.0  # the same against vitest-evals
WANTED_ONE, WANTED_NONE = 1.5, 1.05  # of one case, and of a project without evals, at most, against bare pytest
WANTED_IDEAL, WANTED_FASTER = 2.0, 10.0  # of 500 sleeping ones: at most over the ideal, at least under the peers
WANTED_MATCHING = 1.0  # seconds for 200 × 200 tool calls

TRIVIAL_EVALS = """
from bakeoff import eval_suite
from bakeoff.scorers import Exact

@eval_suite(data=[{{"input": str(n), "expected": str(n)}} for n in range({count})], scorers=[Exact()])
async def test_echo(case):
    return case.input
"""
TRIVIAL_TESTS = """
import pytest

@pytest.mark.parametrize("n", range({count}))
def test_echo(n):
    assert str(n) == str(n)
"""
SLEEPING_EVALS = f"""
import asyncio
from bakeoff import eval_suite
from bakeoff.scorers import Exact

@eval_suite(data=[{{"input": str(n), "expected": str(n)}} for n in range({SLEEPING})], scorers=[Exact()])
async def test_slow(case):
    await asyncio.sleep({PAUSE})
    return case.input
"""
SLEEPING_TESTS = f"""
import time
import pytest

@pytest.mark.parametrize("n", range({SLEEPING}))
def test_slow(n):
    time.sleep({PAUSE})
    assert str(n) == str(n)
"""
SLEEPING_DEEPEVAL = f"""
import time
import pytest
from deepeval import assert_test
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

class Exact(BaseMetric):
    def __init__(self):
        self.threshold = 1.0
        self.async_mode = False

    def measure(self, test_case, *args, **kwargs):
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        self.reason = ""
        return self.score

    async def a_measure(self, test_case, *args, **kwargs):
        return self.measure(test_case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "Exact"

@pytest.mark.parametrize("n", range({SLEEPING}))
def test_slow(n):
    time.sleep({PAUSE})
    assert_test(LLMTestCase(input=str(n), actual_output=str(n), expected_output=str(n)), [Exact()], run_async=False)
"""
VITEST = """
import {{ describeEval }} from 'vitest-evals/legacy';  // data, task and scorers; its newer interface wants a harness

describeEval('bench', {{
  data: async () => Array.from({{ length: {count} }}, (_, n) => ({{ input: String(n), expected: String(n) }})),
  task: async (input) => {{
    {pause}
    return input;
  }},
  scorers: [async ({{ output, expected }}) => ({{ score: output === expected ? 1 : 0 }})],
  threshold: 1,
}});
"""
SLEEPING_VITEST = VITEST.format(
    count=SLEEPING, pause=f"await new Promise((done) => setTimeout(done, {1000 * PAUSE:g}));"
)
ONE_TEST = """
def test_echo():
    assert str(1) == str(1)
"""
VITEST_CONFIG = f"""
import {{ defineConfig }} from 'vitest/config';

export default defineConfig({{
  test: {{ include: ['*.eval.ts'], sequence: {{ concurrent: true }}, maxConcurrency: {AT_ONCE}, reporters: ['dot'] }},
}});
"""


@dataclass(frozen=True, slots=True)
class Measured:
    seconds: float
    cpu: float  # seconds of it, and of what it started, that a core was busy
    peak_mb: float


def main() -> int:
    missed = [*trivial_cases(), *starts(), *sleeping_cases(), *matching()]
    for sentence in missed:
        print(f"✗ missed: {sentence}")
    return 1 if missed else 0


def trivial_cases() -> Iterator[str]:
    """10,000 cases against as many parametrised tests, each in turn, so that a busy moment meets them all."""
    ours, bare, vitest = "bakeoff", "bare pytest, parametrised", "vitest-evals"
    found = interleaved(
        REPEATS,
        {
            ours: lambda: pytest_run(TRIVIAL_EVALS.format(count=TRIVIAL), passed=TRIVIAL, evals=True),
            bare: lambda: pytest_run(TRIVIAL_TESTS.format(count=TRIVIAL), passed=TRIVIAL),
            vitest: lambda: vitest_run(VITEST.format(count=TRIVIAL, pause=""), TRIVIAL),
        },
    )
    show(f"{TRIVIAL:,} trivial cases", found)
    yield from at_most("time against bare pytest", ratio(found[ours], found[bare]), WANTED_TIME)
    print(f"time of a core against bare pytest: {ratio(found[ours], found[bare], 'cpu'):.2f}")
    yield from at_most("memory against bare pytest", ratio(found[ours], found[bare], "peak_mb"), WANTED_MEMORY)
    if found[vitest]:
        yield from at_most("time against vitest-evals", ratio(found[ours], found[vitest]), WANTED_BELOW)


def starts() -> Iterator[str]:
    """One eval case, and a project without evals, against pytest without this plugin."""
    one, unused, bare = "one case", "one bare test, bakeoff installed", "one bare test"
    found = interleaved(
        STARTS,
        {
            one: lambda: pytest_run(TRIVIAL_EVALS.format(count=1), passed=1, evals=True),
            unused: lambda: pytest_run(ONE_TEST, passed=1, evals=True),
            bare: lambda: pytest_run(ONE_TEST, passed=1),
        },
    )
    show("start-up", found)
    for name, wanted in ((one, WANTED_ONE), (unused, WANTED_NONE)):
        print(f"time of a core, {name}, against bare pytest: {ratio(found[name], found[bare], 'cpu'):.2f}")
        yield from at_most(f"{name}, against bare pytest", ratio(found[name], found[bare]), wanted)


def interleaved(repeats: int, contenders: Mapping[str, Callable[[], "Measured | None"]]) -> dict[str, list["Measured"]]:
    """Measure each contender in turn. The first turn only warms caches; a peer that is missing has no measurements."""
    found: dict[str, list[Measured]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, measure in contenders.items():
            taken = measure()
            if turn and taken is not None:
                found[name].append(taken)
    return found


def show(title: str, found: Mapping[str, Sequence["Measured"]]) -> None:
    """Print medians, and the smallest and largest time."""
    print(f"{title:40}{'seconds':>10}{'from':>8}{'to':>8}{'of a core':>10}{'peak MB':>10}")
    for name, taken in found.items():
        if not taken:
            print(f"{name:40}{'missing':>10}")
            continue
        seconds = [each.seconds for each in taken]
        cpu, peak = (statistics.median(getattr(each, what) for each in taken) for what in ("cpu", "peak_mb"))
        spread = f"{min(seconds):>8.2f}{max(seconds):>8.2f}"
        print(f"{name:40}{statistics.median(seconds):>10.2f}{spread}{cpu:>10.2f}{peak:>10.0f}")


def ratio(ours: Sequence["Measured"], others: Sequence["Measured"], what: str = "seconds") -> float:
    """Return the median of the ratios of neighbours in time."""
    pairs = zip(ours, others, strict=True)
    return float(statistics.median(getattr(one, what) / getattr(other, what) for one, other in pairs))


def sleeping_cases() -> Iterator[str]:
    """500 cases of 50 ms. What bare pytest takes for as many tests that do nothing is nobody's fault."""
    ours, idle = [], []
    for _ in range(REPEATS):
        ours.append(pytest_run(SLEEPING_EVALS, f"--eval-jobs={AT_ONCE}", passed=SLEEPING, evals=True).seconds)
        idle.append(pytest_run(TRIVIAL_TESTS.format(count=SLEEPING), passed=SLEEPING).seconds)
    own = statistics.median(idle)
    vitest = vitest_run(SLEEPING_VITEST, SLEEPING)
    ideal = SLEEPING * PAUSE / AT_ONCE + own
    seconds = {
        f"bakeoff, {AT_ONCE} at a time": statistics.median(ours),
        f"ideal ({ideal - own:g} s) + bare pytest's own time": ideal,
        "bare pytest": pytest_run(SLEEPING_TESTS, passed=SLEEPING).seconds,
        "deepeval test run": deepeval_run(),
        f"vitest-evals, {AT_ONCE} at a time": None if vitest is None else vitest.seconds,
    }
    bakeoff, *_ = seconds.values()
    assert bakeoff is not None
    print(f"{SLEEPING} cases of {1000 * PAUSE:g} ms{'':21}{'seconds':>10}{'× bakeoff':>11}")
    for name, taken in seconds.items():
        told = f"{taken:>10.2f}{taken / bakeoff:>10.1f}×" if taken is not None else f"{'missing':>10}"
        print(f"{name:40}{told}")
    yield from at_most("time against ideal + bare pytest's own", bakeoff / ideal, WANTED_IDEAL)
    for name in ("bare pytest", "deepeval test run"):
        if (taken := seconds[name]) is not None:
            yield from at_least(f"faster than {name}", taken / bakeoff, WANTED_FASTER)


def matching() -> Iterator[str]:
    """200 expected calls among 200 made, in another order, with arguments that are nearly alike."""
    made = [ToolCall(name="tool", arguments={"place": n // 2, "odd": n % 2 == 1}) for n in range(200)]
    expected = [{"name": "tool", "arguments": {"place": n // 2, "odd": n % 2 == 1}} for n in range(200)]
    random.Random(0).shuffle(expected)
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        found = asyncio.run(ToolCalls()(ScoreInput.of(tool_calls=made, expected_tools=expected)))
        taken.append(time.perf_counter() - started)
        assert found.value == 1, found
    seconds = statistics.median(taken)
    yield from at_most("seconds for 200 × 200 tool calls", seconds, WANTED_MATCHING)


def at_most(what: str, found: float, wanted: float) -> Iterator[str]:
    print(f"{what}: {found:.2f} (wanted: at most {wanted:g})")
    if found > wanted:
        yield f"{what} is {found:.2f}, wanted at most {wanted:g}"


def at_least(what: str, found: float, wanted: float) -> Iterator[str]:
    print(f"{what}: {found:.1f}× (wanted: at least {wanted:g}×)")
    if found < wanted:
        yield f"{what} is {found:.1f}×, wanted at least {wanted:g}×"


def pytest_run(test: str, *options: str, passed: int, evals: bool = False) -> Measured:
    """With no plugin but ours, or none at all: what else is installed here is not what is measured."""
    plugin = ("-p", "bakeoff.doors.pytest.plugin") if evals else ()
    with folder_with({"test_bench.py": test, "pytest.ini": "[pytest]\n"}) as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *options]
        # Compiling every module anew is not what is measured either, so bytecode is kept, whatever this shell says.
        kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache_folder() / "bench" / "bytecode")}
        return measured(command, folder, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **kept}, f"{passed} passed")


def deepeval_run() -> float | None:
    program = peer("deepeval", "bin/deepeval")
    if program is None:
        return None
    with folder_with({"test_bench.py": SLEEPING_DEEPEVAL}) as folder:
        path = f"{program.parent}:{os.environ['PATH']}"
        return measured(
            [str(program), "test", "run", "test_bench.py"], folder, {"PATH": path}, f"{SLEEPING} passed"
        ).seconds


def vitest_run(test: str, passed: int) -> Measured | None:
    program = peer("vitest-evals", "node_modules/vitest/vitest.mjs")
    if program is None:
        return None
    with folder_with({"bench.eval.ts": test, "vitest.config.mjs": VITEST_CONFIG}) as folder:
        (folder / "node_modules").symlink_to(program.parents[1])
        return measured(["node", str(program), "run"], folder, {}, f"{passed} passed")


def peer(name: str, program: str) -> Path | None:
    """A peer's program, installed into the cache the first time."""
    environment = install_peer(name)
    if environment.missing:
        print(f"{name} is missing: {environment.missing}")
        return None
    return environment.folder / program


@contextmanager
def folder_with(files: Mapping[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bakeoff-bench-") as made:
        for name, text in files.items():
            (Path(made) / name).write_text(text, encoding="utf-8")
        yield Path(made)


def measured(command: list[str], folder: Path, environment: Mapping[str, str], said: str) -> Measured:
    """Time and peak memory of a process that says it did all of the work."""
    with (folder / "out.txt").open("w+", encoding="utf-8", errors="replace") as out:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **QUIET, **environment}, stdout=out, stderr=out
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        told = out.read()
    if said not in told:
        sys.exit(f"✗ {' '.join(command)} did not say {said!r}:\n{told[-2000:]}")
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


if __name__ == "__main__":
    sys.exit(main())
