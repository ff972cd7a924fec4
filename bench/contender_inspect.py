"""Instant trials through inspect-ai, with its log: `cases`."""

import sys
import tempfile
import time

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import exact
from inspect_ai.solver import Generate, Solver, TaskState, solver

from bench.measure import report


@solver
def echo() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("echo", state.input_text)
        state.completed = True
        return state

    return solve


def main() -> None:
    count = int(sys.argv[1])
    samples = [Sample(id=f"case-{n}", input=f"say {n}", target=f"say {n}") for n in range(count)]
    task = Task(dataset=MemoryDataset(samples), solver=echo(), scorer=exact())
    with tempfile.TemporaryDirectory() as logs:
        started = time.perf_counter()
        [log] = eval(task, model="mockllm/model", log_dir=logs, display="none", max_samples=8)
        seconds = time.perf_counter() - started
    assert log.status == "success", log.error
    report(count, seconds)


if __name__ == "__main__":
    main()
