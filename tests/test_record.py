"""The verdict is derived, and unknown money stays unknown."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bakeoff.record import NO_USAGE, Failure, Phase, Reasoning, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.report.formatting import money
from bakeoff.verdict import LOST, Verdict, reaches

RIGHT, HALF, WRONG = (Score(name=str(value), value=value) for value in (1.0, 0.5, 0.0))
SILENT = Score(name="silent", reason="unscored")


def broken(kind: str) -> Failure:
    return Failure.model_validate({"kind": kind, "type": "E", "message": "m"})


def broken_scorer(kind: str) -> Score:
    return Score(name="broken", failure=broken(kind))


@pytest.mark.parametrize(
    ("threshold", "scores", "value", "verdict"),
    [
        (1.0, (RIGHT,), 1.0, "pass"),
        (1.0, (RIGHT, HALF), 0.75, "fail"),
        (0.75, (RIGHT, HALF), 0.75, "pass"),
        (0.0, (WRONG,), 0.0, "pass"),
        (None, (WRONG,), 0.0, "recorded"),
        (1.0, (RIGHT, SILENT), 1.0, "pass"),
        (1.0, (SILENT,), None, "grader"),
        (None, (SILENT,), None, "grader"),
        (1.0, (), None, "grader"),
        (1.0, (RIGHT, broken_scorer("grader")), None, "grader"),
        (1.0, (WRONG, broken_scorer("infra")), None, "infra"),
        (1.0, (broken_scorer("subject"), RIGHT), 0.0, "fail"),
        (1.0, (broken_scorer("timeout"),), 0.0, "timeout"),
        (None, (broken_scorer("grader"),), None, "grader"),
        (1.0, (broken_scorer("infra"), broken_scorer("grader")), None, "infra"),
    ],
)
def test_scores_give_the_verdict(
    threshold: float | None,
    scores: tuple[Score, ...],
    value: float | None,
    verdict: str,
    make_record: Callable[..., Record],
) -> None:
    record = make_record(threshold=threshold, scores=scores, transcript=Transcript())
    assert (record.value, record.verdict) == (value, verdict)


@pytest.mark.parametrize("phase", ["prepare", "attempt", "score"])
@pytest.mark.parametrize(
    ("kind", "value", "verdict"),
    [
        ("subject", 0.0, "fail"),
        ("timeout", 0.0, "timeout"),
        ("infra", None, "infra"),
        ("budget", None, "budget"),
        ("grader", None, "grader"),
    ],
)
@pytest.mark.parametrize("threshold", [0.0, None])
def test_a_broken_phase_gives_the_verdict_whatever_the_scores_and_the_threshold(
    phase: str,
    kind: str,
    value: float | None,
    verdict: str,
    threshold: float | None,
    make_record: Callable[..., Record],
) -> None:
    ended = Phase(seconds=1.0, failure=broken(kind))
    record = make_record(**{phase: ended}, scores=(RIGHT,), threshold=threshold)
    assert (record.value, record.verdict, record.failure) == (value, verdict, broken(kind))


def test_the_first_phase_that_broke_is_the_one_that_counts(make_record: Callable[..., Record]) -> None:
    late = Phase(seconds=2.0, failure=broken("timeout"))
    ours = Phase(seconds=1.0, failure=broken("infra"))
    record = make_record(prepare=ours, attempt=late, scores=(broken_scorer("grader"),))
    assert (record.verdict, record.seconds) == (Verdict.INFRA, 3.0)


def test_three_verdicts_are_not_the_subjects_doing() -> None:
    assert {verdict for verdict in Verdict if not verdict.counts} == LOST == {"budget", "infra", "grader"}


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_score_outside_0_to_1_cannot_be_made(value: float) -> None:
    with pytest.raises(ValidationError):
        Score(name="x", value=value)


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [(None, None, None), (None, 1.5, 1.5), (1.5, None, 1.5), (0.0, None, 0.0), (None, 0.0, 0.0), (1.0, 2.0, 3.0)],
)
def test_unknown_cost_is_never_turned_into_nothing(one: float | None, other: float | None, total: float | None) -> None:
    assert (Usage(cost=one) + Usage(cost=other)).cost == total


usages = st.builds(
    Usage,
    requests=st.integers(0, 9),
    input=st.integers(0, 99),
    output=st.integers(0, 99),
    cache_read=st.integers(0, 99),
    cache_write=st.integers(0, 99),
    reasoning=st.integers(0, 99),
    cost=st.none() | st.integers(0, 9).map(float),
)


@given(usages, usages, usages)
def test_usage_adds_up_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert (one + two).tokens == one.tokens + two.tokens
    assert one + Usage() == one


@given(usages, usages)
def test_taking_away_undoes_adding(one: Usage, two: Usage) -> None:
    back = (one + two) - two
    unknown = {"cost": None, "unpriced": 0}
    assert back.model_copy(update=unknown) == one.model_copy(update=unknown)
    assert back.tokens_without_price == one.tokens_without_price
    assert (back.cost or 0.0) == (one.cost or 0.0)


def test_tool_calls_are_those_of_all_steps() -> None:
    calls = [ToolCall(name=name) for name in "ab"]
    steps = (Step(parts=(Text(text="t"), calls[0])), Step(parts=(Reasoning(text="r"), calls[1])))
    assert Transcript(steps=steps).tool_calls == tuple(calls)


def test_parts_keep_their_kind_when_defaults_are_left_out() -> None:
    step = Step(parts=(Text(text="t"), Reasoning(text="r"), ToolCall(name="n")))
    assert Step.model_validate_json(step.model_dump_json(exclude_defaults=True)) == step
    assert Step.model_validate(step.model_dump()) == step


def test_a_mean_that_only_rounding_keeps_below_the_threshold_reaches_it(make_record: Callable[..., Record]) -> None:
    mean = sum([0.7] * 3) / 3
    assert mean < 0.7
    assert reaches(mean, 0.7)
    assert not reaches(0.6999, 0.7)
    scores = tuple(Score(name=str(number), value=0.7) for number in range(3))
    assert make_record(threshold=0.7, scores=scores, transcript=Transcript()).verdict is Verdict.PASS


def test_texts_that_come_in_by_a_copy_are_cleaned_like_all_others() -> None:
    half = "half a pair: \ud83d"
    call = ToolCall(name="t").model_copy(update={"result": {half: [half]}, "error": half})
    assert (call.result, call.error) == ({"half a pair: \\ud83d": ["half a pair: \\ud83d"]}, "half a pair: \\ud83d")
    transcript = Transcript().model_copy(update={"steps": (Step(parts=(call,)),), "metadata": {"said": half}})
    assert Transcript.model_validate_json(transcript.model_dump_json()) == transcript
    score = Score(name="s").model_copy(update={"reason": half})
    assert score.reason == "half a pair: \\ud83d"


def test_tokens_without_a_price_stay_known_in_sums():
    total = Usage(input=5) + Usage(input=2, cost=0.1) + NO_USAGE + Usage(output=3)
    assert (total.cost, total.tokens_without_price) == (0.1, 8)
    assert money(total) == "at least $0.1000 (8 tokens without a price)"
    assert (Usage(input=5) + Usage(input=2)).unpriced == 0  # as in a record without any price
    assert money(total - Usage(input=5) - Usage(output=3)) == "$0.1000"
