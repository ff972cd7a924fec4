"""Time limits of the phases of a trial."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff.errors import InfraError
from bakeoff.plan import Limits, ScorerSpec
from bakeoff.protocols import Needs, Task

from .probes import CarryOut, Judge, Probe, forever, plan_of, registry_of

QUICK = Limits(attempt_seconds=0.05, score_seconds=0.05, prepare_seconds=0.05)


async def test_an_attempt_that_takes_too_long_is_a_timeout_and_is_not_tried_again(carry_out: CarryOut) -> None:
    probe = Probe(forever)
    (record,) = await carry_out(plan_of(limits=QUICK), registry=registry_of(probe))
    assert (record.verdict, record.value, record.tries, len(probe.asked)) == ("timeout", 0.0, 1, 1)
    assert record.failure is not None
    assert record.failure.message == "not finished after 0.05 s"
    assert record.scores == ()


async def test_a_scorer_that_takes_too_long_is_the_graders_fault(carry_out: CarryOut) -> None:
    (record,) = await carry_out(
        plan_of(limits=QUICK, scorers=(ScorerSpec(kind="judge"), ScorerSpec(kind="exact"))),
        registry=registry_of(Probe(), Judge(forever)),
    )
    assert record.verdict == "grader"
    assert [score.value for score in record.scores] == [None, 1.0]


async def test_preparing_for_too_long_is_ours_and_is_tried_again(carry_out: CarryOut) -> None:
    probe = Probe(needs=Needs(workspace=True))
    limits = Limits(prepare_seconds=0.000001)
    (record,) = await carry_out(plan_of(limits=limits), registry=registry_of(probe), retries=1)
    assert (record.verdict, record.tries, probe.asked, record.attempt) == ("infra", 2, [], None)


@pytest.mark.parametrize("blame", ["answers", "raises"])
async def test_what_a_subject_makes_of_its_timeout_does_not_count(blame: str, carry_out: CarryOut) -> None:
    async def stubborn(task: Task) -> str:
        try:
            await forever(task)
        except asyncio.CancelledError:
            if blame == "raises":
                raise InfraError("the connection was closed") from None
        return "yes"

    probe = Probe(stubborn)
    (record,) = await carry_out(plan_of(limits=QUICK), registry=registry_of(probe))
    assert (record.verdict, len(probe.asked)) == ("timeout", 1)


HANGS = """
import asyncio, sys, time
from pathlib import Path
from bakeoff.plan import Limits
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.engine.run import run
from bakeoff.subjects.function import function_subject

def hang(prompt):
    while True:
        time.sleep(3600)

async def main():
    case = Case(id="c", prompt="?", expected="x", limits=Limits(attempt_seconds=0.2))
    plan = Plan(name="p", cases=(case,), subjects=(function_subject(hang),), scorers=(ScorerSpec(kind="exact"),))
    async for record in run(plan, RunOptions(results=Path(sys.argv[1]))):
        print(record.verdict, flush=True)

asyncio.run(main())
"""


def test_a_sync_function_that_hangs_is_reported_in_time_and_the_process_ends(tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    done = subprocess.run(
        [sys.executable, script, tmp_path / "results"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "timeout\n"), done.stderr


# --- whose doing --------------------------------------------------------------------------------------------------
