"""Run 40 short trials in a process of its own: `python -m tests.storage.sleeping_run RESULTS [RUN]`.

Prints a line for each finished trial, and at the end the problem of the upload, if there was one.
"""

import asyncio
import os
import sys
from pathlib import Path

from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.storage.run_folder import find_run
from bakeoff.storage.store_copy import results_folder
from bakeoff.subjects.function import function_subject

TRIALS = 40
INTERVAL = 0.2


async def slow_echo(prompt: str) -> str:
    await asyncio.sleep(0.1)
    return prompt + "x" * (20_000 if prompt.endswith("0") else 0)  # a blob for every tenth


def plan() -> Plan:
    trials = int(os.environ.get("TRIALS", TRIALS))
    return Plan(
        name="sleeping",
        cases=tuple(Case(id=f"case-{n}", prompt=f"say {n}", expected="nothing") for n in range(trials)),
        subjects=(function_subject(slow_echo, "slow"),),
        scorers=(ScorerSpec(kind="exact"),),
        threshold=None,
    )


async def main(results: Path, name: str | None) -> None:
    control = RunControl()
    folder = find_run(results, name).path if name else None
    options = RunOptions(results=results, folder=folder, jobs=2, upload_interval=INTERVAL)
    async for record in run(plan(), options, control=control):
        print("finished", record.case, flush=True)
    print("problem", control.upload_problem, flush=True)
    print("stopped", control.stopped, flush=True)


if __name__ == "__main__":
    asyncio.run(main(results_folder(Path(sys.argv[1])), sys.argv[2] if len(sys.argv) > 2 else None))
