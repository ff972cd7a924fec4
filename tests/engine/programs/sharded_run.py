"""Run one shard of a plan, or all of it, and print a line for each trial: `folder [number of]`."""

import asyncio
import sys
from pathlib import Path

from bakeoff.engine.run import run
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.subjects.function import function_subject


async def mostly_right(prompt: str) -> str:
    await asyncio.sleep(0.02)
    number = int(prompt)
    return prompt if number % 3 else "wrong"


def whole_plan() -> Plan:
    return Plan(
        name="sharded",
        cases=tuple(Case(id=f"case-{n}", prompt=str(n), expected=str(n)) for n in range(30)),
        subjects=(
            function_subject(mostly_right, "mostly-right"),
            SubjectSpec(name="always-7", kind="scripted", options={"default": "7"}),
        ),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=2,
    )


async def main(folder: Path, shard: list[int]) -> None:
    plan = whole_plan().take_shard(*shard) if shard else whole_plan()
    async for record in run(plan, RunOptions(folder=folder, jobs=2)):
        print(record.attempt_key, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]))
