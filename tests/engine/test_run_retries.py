"""Only infra failures are retried, after growing waits."""

import time
from collections.abc import Awaitable, Callable

import pytest

from bakeoff.errors import GraderError, InfraError, SubjectError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ScoreInput, Task
from bakeoff.record import Transcript, Usage

from .probes import CarryOut, Judge, Probe, plan_of, registry_of


def failing(times: int, error: Exception) -> Callable[[Task], Awaitable[str]]:
    left = [error] * times

    async def attempt(task: Task) -> str:
        if left:
            raise left.pop()
        return "yes"

    return attempt


@pytest.mark.parametrize(
    ("error", "times", "retries", "tries", "verdict"),
    [
        (InfraError("down"), 2, 2, 3, "pass"),
        (InfraError("down"), 3, 2, 3, "infra"),
        (InfraError("down"), 1, 0, 1, "infra"),
        (OSError("reset"), 1, 2, 2, "pass"),
        (SubjectError("wrong"), 1, 2, 1, "fail"),
        (GraderError("odd"), 1, 2, 1, "grader"),
    ],
)
async def test_only_infra_is_tried_again_and_then_given_up(
    error: Exception, times: int, retries: int, tries: int, verdict: str, carry_out: CarryOut
) -> None:
    probe = Probe(failing(times, error))
    (record,) = await carry_out(plan_of(), registry=registry_of(probe), retries=retries)
    assert (record.verdict, record.tries, len(probe.asked)) == (verdict, tries, tries)


@pytest.mark.parametrize(("asked_for", "least"), [(None, 0.1), (0.15, 0.25), (60.0, 0.4)])
async def test_waits_double_are_jittered_and_as_long_as_was_asked_for_up_to_a_limit(
    asked_for: float | None, least: float, carry_out: CarryOut
) -> None:
    probe = Probe(failing(2, InfraError("busy", retry_after=asked_for)))
    started = time.perf_counter()
    (record,) = await carry_out(
        plan_of(), registry=registry_of(probe), backoff_seconds=0.08, longest_backoff_seconds=0.2
    )
    assert record.verdict == "pass"
    assert least <= time.perf_counter() - started < 50


async def test_a_scorer_that_could_not_reach_its_judge_does_not_pay_for_the_attempt_again(carry_out: CarryOut) -> None:
    left = [InfraError("judge down")] * 2

    def flaky(given: ScoreInput) -> float:
        if left:
            raise left.pop()
        return 1.0

    async def paid(task: Task) -> Transcript:
        return Transcript(output="yes", usage=Usage(input=5, cost=0.5))

    probe = Probe(paid)
    (record,) = await carry_out(plan_of(scorers=(ScorerSpec(kind="judge"),)), registry=registry_of(probe, Judge(flaky)))
    assert (record.verdict, len(probe.asked), record.spent) == ("pass", 1, Usage(input=5, cost=0.5))


# --- budgets ------------------------------------------------------------------------------------------------------
