"""Runs a plan and says each trial's key once it has been handed out; made to be killed at any moment."""

import asyncio
import random
import sys
from pathlib import Path

from bakeoff.engine.run import run
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Transcript, Usage
from bakeoff.subjects.function import function_subject


async def answer(prompt: str) -> Transcript:
    await asyncio.sleep(random.uniform(0, 0.02))
    return Transcript(output=prompt * (2000 if prompt.endswith("7") else 1), usage=Usage(requests=1, input=10))


def plan(cases: int) -> Plan:
    script = SubjectSpec(kind="scripted", name="script", options={"default": {"output": "x", "seconds": 0.005}})
    return Plan(
        name="killed",
        cases=tuple(Case(id=f"case-{number}", prompt=f"prompt {number}", expected="x") for number in range(cases)),
        subjects=(function_subject(answer, "function"), script),
        scorers=(ScorerSpec(kind="contains"),),
    )


async def main(folder: Path, cases: int, jobs: int = 8) -> None:
    async for record in run(plan(cases), RunOptions(folder=folder, jobs=jobs)):
        print(record.attempt_key, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
