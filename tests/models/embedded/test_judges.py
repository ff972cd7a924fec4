"""The embedded model as a judge, from a plan to a score."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Record
from bakeoff.scorers import ContextPrecision, Criterion, Faithfulness, Rubric, ask_judge
from bakeoff.scorers.judge import USUAL_CHOICES

pytestmark = pytest.mark.full

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
        scorers=(ScorerSpec(kind="judge", options={"criteria": "Does it name the right city?", "repeats": 2}),),
        threshold=None,
    )
    [record] = await carry_out(plan, retries=0)
    assert record.failure is None
    [judged] = record.scores
    assert judged.metadata["judge"] == "local:smollm2"
    assert judged.metadata["spread"] is not None
    assert len(judged.metadata["choices"]) == 2  # type: ignore[arg-type]
    assert judged.value is not None
    assert min(USUAL_CHOICES.values()) <= judged.value <= max(USUAL_CHOICES.values())
    assert judged.metadata["rationale"]
    assert record.spent.requests >= 2
    assert record.spent.input > 200
    assert record.spent.output > 10


async def test_every_shape_of_answer_works_with_the_embedded_model(
    use_cache: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of statements, one boolean for each passage, one level for each criterion, and a type of the user."""
    monkeypatch.delenv("BAKEOFF_JUDGE", raising=False)
    passages = ["Paris is the capital of France.", "Rome is in Italy."]
    given = ScoreInput.of("It is Paris.", input="The capital of France?", expected="Paris", context=passages)
    judges: list[Any] = [
        Faithfulness(),
        ContextPrecision(),
        Rubric((Criterion(name="right", text="It names Paris."),)),
    ]
    async with judges[0].access.open() as provider:
        given = replace(given, resources={judges[0].access.key: provider})
        scores = {judge.name: await judge(given) for judge in judges}
        assert {name: score for name, score in scores.items() if "unreadable" in score.metadata} == {}
        assert {score.metadata["judge"] for score in scores.values()} == {"local:smollm2"}
        assert all(score.reason for score in scores.values())
        assert await ask_judge("Is the sky blue?", bool) in (True, False)
