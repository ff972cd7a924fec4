"""The embedded model as a judge, from a plan to a score."""

from collections.abc import Awaitable, Callable

import pytest

from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Record
from bakeoff.scorers.judge import FACTUALITY, USUAL_CHOICES

pytest.importorskip("xllamacpp", reason="llama.cpp is not here: pip install 'bakeoff[local]'")


async def test_the_embedded_model_judges_by_a_rubric_and_its_usage_is_booked(
    use_cache: None, carry_out: Callable[..., Awaitable[list[Record]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BAKEOFF_JUDGE", raising=False)
    plan = Plan(
        name="judged",
        cases=(
            Case(
                id="c",
                prompt="What is the capital of France?",
                expected="Paris",
                limits=Limits(score_seconds=300),
            ),
        ),
        subjects=(SubjectSpec(kind="model", name="m", options={"model": "scripted:It is Paris."}),),
        scorers=(
            ScorerSpec(kind="judge", options={"criteria": "Does the answer name the right city?", "repeats": 2}),
            ScorerSpec(kind="factuality", options={}),
        ),
        threshold=None,
    )
    [record] = await carry_out(plan, retries=0)
    assert record.failure is None
    judged, factual = record.scores
    assert judged.metadata["judge"] == factual.metadata["judge"] == "local:smollm2"
    assert judged.metadata["spread"] is not None
    assert len(judged.metadata["choices"]) == 2  # type: ignore[arg-type]
    assert judged.value is not None
    assert min(USUAL_CHOICES.values()) <= judged.value <= max(USUAL_CHOICES.values())
    assert factual.value in FACTUALITY.values()
    assert factual.metadata["rationale"]
    assert record.spent.requests >= 3
    assert record.spent.input > 300
    assert record.spent.output > 10
