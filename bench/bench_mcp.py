"""4 models × 25 cases × 10 rounds with a provider that takes 20 ms, and a limit of 50 calls in flight.

Measured at the provider: never more than 50 at a time, and from the first call to the last no more than 1.2 times what
the limit allows at best.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.plan import EvaluationRequest
from bakeoff.models.providers import register_provider
from bakeoff.options import RunOptions

MODELS, CASES, ROUNDS, LIMIT = 4, 25, 10, 50
LATENCY = 0.02
WANTED = 1.2
IDEAL = MODELS * CASES * ROUNDS / LIMIT * LATENCY
REPEATS = 3
SERVER = Path(__file__).parents[1] / "tests" / "doors" / "mcp" / "servers" / "desk.py"
REPLY = '{"serverName": "health", "toolName": "calculate-bmi", "parameters": {"weightKg": 90, "heightM": 1.8}}'


class Provider:
    """Answers after a while, and counts who is waiting."""

    def __init__(self) -> None:
        self.in_flight = self.most = self.calls = 0
        self.first = self.last = 0.0
        self.busy = 0.0  # seconds of processor time from the first call to the last
        self._began = 0.0

    async def create_message(self, system: str, message: str) -> str:
        if not self.calls:
            self.first, self._began = perf_counter(), process_time()
        self.calls += 1
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(LATENCY)
        self.in_flight -= 1
        self.last, self.busy = perf_counter(), process_time() - self._began
        return REPLY


def config() -> str:
    expected = "{serverName: health, toolName: calculate-bmi, parameters: {weightKg: 90, heightM: 1.8}}"
    lines = [f"testRound: {ROUNDS}", f"concurrencyLimit: {LIMIT}", "passThreshold: 1", "modelsToTest:"]
    lines += [f"  - timed:model-{number}" for number in range(MODELS)]
    lines += ["testCases:"]
    lines += [f"  - {{prompt: 'BMI, case {number}', expectedOutput: {expected}}}" for number in range(CASES)]
    server = f"{{name: health, command: '{sys.executable}', args: ['{SERVER}', health]}}"
    return "\n".join([*lines, "mcpServers:", f"  - {server}", ""])


def measured() -> tuple[float, Provider]:
    provider = Provider()
    take_back = register_provider("timed", provider)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "suite.yaml")
        file.write_text(config())
        request = EvaluationRequest(path=file, report=Path(folder, "report"))
        try:
            report = evaluate(request, options=RunOptions(results=Path(folder, "results")))
        finally:
            take_back()
    assert report.summary.allPass, report.summary
    assert provider.calls == MODELS * CASES * ROUNDS, provider.calls
    return provider.last - provider.first, provider


def main() -> int:
    measured()  # the first imports everything
    taken = []
    for _ in range(REPEATS):
        seconds, provider = measured()
        taken.append(seconds)
        print(
            f"{provider.calls} calls, at most {provider.most} in flight, {seconds:.3f} s from the first to the last "
            f"({provider.busy:.3f} s of processor time)"
        )
        if provider.most > LIMIT:
            return 1
    best = min(taken)
    print(f"best: {best / IDEAL:.2f}× the ideal {IDEAL:g} s (wanted: at most {WANTED:g}×)")
    return 0 if best <= WANTED * IDEAL else 1


if __name__ == "__main__":
    sys.exit(main())
