"""Runs a plan until it is decided and says each trial's key; made to be killed at any moment."""

import asyncio
import random
import sys
from pathlib import Path

from bakeoff.engine.run import run
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, UntilDecided


def plan(cases: int = 60) -> Plan:
    chance = random.Random(2)
    subjects = tuple(
        SubjectSpec(
            kind="scripted",
            name=name,
            options={
                "answers": {
                    f"case-{number}": {"output": "yes" if chance.random() < rate else "no", "seconds": 0.02}
                    for number in range(cases)
                }
            },
        )
        for name, rate in (("good", 0.9), ("bad", 0.3))
    )
    return Plan(
        name="decided",
        cases=tuple(Case(id=f"case-{number}", prompt="?", expected="yes") for number in range(cases)),
        subjects=subjects,
        scorers=(ScorerSpec(kind="exact"),),
        until_decided=UntilDecided(),
    )


async def main(folder: Path) -> None:
    async for record in run(plan(), RunOptions(folder=folder, jobs=1, sandbox="process")):
        print(record.attempt_key, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
