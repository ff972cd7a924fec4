"""Instant trials through Bakeoff, journal on and fsynced: `cases subjects rounds [folder to run in] [stop after]`."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.record import Verdict
from bakeoff.report.summary import summarise
from bakeoff.storage.run_folder import RunFolder
from bakeoff.subjects.function import function_subject
from bench.measure import report


async def echo(prompt: str) -> str:
    return prompt


def instant_plan(cases: int, subjects: int, rounds: int) -> Plan:
    return Plan(
        name="instant",
        cases=tuple(Case(id=f"case-{n}", prompt=f"say {n}", expected=f"say {n}") for n in range(cases)),
        subjects=tuple(function_subject(echo, f"echo-{n}") for n in range(subjects)),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=rounds,
    )


async def carry_out(plan: Plan, folder: Path, stop_after: int | None) -> int:
    control = RunControl()
    done = 0
    async for record in run(plan, RunOptions(folder=folder), control=control):
        assert record.verdict is Verdict.PASS, record
        done += 1
        if done == stop_after:
            control.stop()
    return done


def main() -> None:
    cases, subjects, rounds = map(int, sys.argv[1:4])
    plan = instant_plan(cases, subjects, rounds)
    stop_after = int(sys.argv[5]) if len(sys.argv) > 5 else None
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[4]) if len(sys.argv) > 4 else Path(scratch)
        started = time.perf_counter()
        done = asyncio.run(carry_out(plan, folder, stop_after))
        seconds = time.perf_counter() - started
        summary = summarise(plan, RunFolder(folder).latest_records(plan))
        if stop_after is None:
            assert summary.complete, "every trial is in the journal and was scored"
        report(done, seconds)


if __name__ == "__main__":
    main()
