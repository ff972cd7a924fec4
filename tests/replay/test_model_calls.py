"""Recording a run's model calls, and running it again from the recordings alone."""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff.engine.registry import Registry, default_registry
from bakeoff.errors import PlanError
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.protocols import Tool
from bakeoff.record import Record, Usage
from bakeoff.verdict import Verdict

from ..models.loopback import KEY, Act, Loopback, Received, plan_of

CarryOut = Callable[..., Awaitable[list[Record]]]
MakeSpec = Callable[..., SubjectSpec]


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    return tmp_path / "recordings"


def measured(records: list[Record]) -> list[Any]:
    """Return what a replay must give again to the last byte."""
    return sorted(
        (
            record.case,
            record.round,
            record.verdict,
            tuple(score.model_dump_json() for score in record.scores),
            record.spent.model_dump_json(),
            record.transcript and record.transcript.usage.model_dump_json(),
            record.transcript and str(record.transcript.output),
            record.transcript and record.transcript.metadata.get("price"),
        )
        for record in records
    )


def varied(request: Received) -> Act:
    return Act(
        say="yes" if request.number % 3 else f"no {request.number}",
        usage={"input": 10 + request.number, "output": 5, "cached": request.number % 7},
    )


async def test_a_run_is_replayed_byte_for_byte_without_its_provider_or_its_key(
    provider: Loopback,
    carry_out: CarryOut,
    model_spec: MakeSpec,
    recordings: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider.plan = varied
    plan = plan_of(model_spec("a"), model_spec("b", temperature=0.5), cases=10, rounds=2)
    first = await carry_out(plan, replay="record", recordings=recordings)
    asked = len(provider.received)
    provider.stop()
    monkeypatch.delenv("LOOPBACK_API_KEY")
    second = await carry_out(plan, replay="strict", recordings=recordings)
    assert measured(first) == measured(second)
    assert asked == 40
    assert {record.verdict for record in second} == {Verdict.PASS, Verdict.FAIL}
    assert all(record.transcript and record.transcript.metadata["replayed"] for record in second)
    assert {record.answers for record in first} == {"recorded"}
    assert {record.answers for record in second} == {"replayed"}


async def test_without_recordings_the_missing_key_is_still_said_first(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOOPBACK_API_KEY")
    with pytest.raises(PlanError, match="LOOPBACK_API_KEY"):
        await carry_out(plan_of(model_spec()), replay="auto")


async def test_one_changed_word_is_named_with_its_case_and_nothing_else(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    plan = plan_of(model_spec(), cases=5)
    await carry_out(plan, replay="record", recordings=recordings)
    provider.stop()
    changed = tuple(case.model_copy(update={"prompt": "query 3"}) if case.id == "c3" else case for case in plan.cases)
    records = await carry_out(plan.model_copy(update={"cases": changed}), replay="strict", recordings=recordings)
    lost = [record for record in records if record.verdict is not Verdict.PASS]
    assert [(record.case, record.verdict) for record in lost] == [("c3", Verdict.INFRA)]
    failure = lost[0].failure
    assert failure is not None
    assert failure.permanent
    assert lost[0].tries == 1
    assert "case 'c3', round 1" in failure.message
    assert re.search(r"the nearest recording, \w{32} \(case 'c3', round 1\), differs in:", failure.message)
    assert '"content": "question 3"' in failure.message
    assert '"content": "query 3"' in failure.message
    assert "question 2" not in failure.message


@pytest.mark.parametrize(
    "change",
    [{"temperature": 0.1}, {"seed": 5}, {"max_tokens": 7}, {"system": "Be kind."}, {"model": "loopback:other"}],
    ids=lambda change: next(iter(change)),
)
async def test_whatever_changes_the_question_changes_the_recording(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path, change: dict[str, Any]
) -> None:
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    [record] = await carry_out(plan_of(model_spec(**change)), replay="strict", recordings=recordings)
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert "differs in:" in record.failure.message


@pytest.mark.parametrize(
    "change",
    [{"timeout": 9.0}, {"idle_seconds": 9.0}, {"patience_seconds": 9.0}, {"price": None}, {"stream": True}],
    ids=str,
)
async def test_what_does_not_change_the_question_does_not(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path, change: dict[str, Any]
) -> None:
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    [record] = await carry_out(plan_of(model_spec(**change)), replay="strict", recordings=recordings)
    assert record.verdict is Verdict.PASS
    assert record.spent == Usage(requests=1, input=10, output=5, cost=0.002)


async def test_rounds_are_recorded_apart(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    provider.plan = lambda request: Act(say=f"answer {request.number}")
    await carry_out(plan_of(model_spec(seed=1), rounds=3), replay="record", recordings=recordings, jobs=1)
    provider.stop()
    records = await carry_out(plan_of(model_spec(seed=1), rounds=3), replay="strict", recordings=recordings)
    said = {record.round: record.transcript.output for record in records if record.transcript}
    assert said == {0: "answer 0", 1: "answer 1", 2: "answer 2"}


async def test_equal_subjects_and_equal_prompts_are_recorded_apart(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    provider.plan = lambda request: Act(say=f"answer {request.number}", usage={"input": 10 + request.number})
    plan = plan_of(model_spec("a", seed=1), model_spec("b", seed=1))
    cases = tuple(Case(id=name, prompt="the same", expected="yes") for name in ("first", "second"))
    plan = plan.model_copy(update={"cases": cases})
    first = await carry_out(plan, replay="auto", recordings=recordings)
    assert len(provider.received) == len(list(recordings.rglob("*.json"))) == 4
    provider.stop()
    second = await carry_out(plan, replay="strict", recordings=recordings)
    assert measured(first) == measured(second)
    assert len({record.transcript.output for record in second if record.transcript}) == 4


async def test_one_model_at_two_addresses_is_recorded_apart(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    elsewhere = {"loopback": {"base_url": "http://127.0.0.1:9/v1", "key_variable": "LOOPBACK_API_KEY"}}
    [record] = await carry_out(plan_of(model_spec(providers=elsewhere)), replay="strict", recordings=recordings)
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert '"endpoint"' in record.failure.message


async def test_an_answer_that_is_no_unicode_is_scored_and_replayed(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    provider.then(Act(say="half a pair: \ud83d"))
    first = await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    second = await carry_out(plan_of(model_spec()), replay="strict", recordings=recordings)
    assert first[0].verdict is Verdict.FAIL
    assert first[0].spent.cost == 0.002
    assert measured(first) == measured(second)


async def test_what_cannot_be_recorded_is_booked_and_not_asked_again(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    recordings.write_text("a file where the folder should be")
    [record] = await carry_out(plan_of(model_spec()), replay="record", recordings=recordings, retries=3)
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert "cannot be written: " in record.failure.message
    assert record.spent == Usage(requests=1, input=10, output=5, cost=0.002)
    assert len(provider.received) == 1


async def test_auto_asks_only_what_is_not_recorded(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    await carry_out(plan_of(model_spec(), cases=2), replay="auto", recordings=recordings)
    assert len(provider.received) == 2
    records = await carry_out(plan_of(model_spec(), cases=5), replay="auto", recordings=recordings)
    assert len(provider.received) == 5
    assert sum(bool(record.transcript and record.transcript.metadata.get("replayed")) for record in records) == 2


async def test_what_is_replayed_is_shown_and_charged_to_no_budget(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    plan = plan_of(model_spec(), cases=5)
    first = await carry_out(plan, replay="record", recordings=recordings)
    limits = {"max_cost": 0.001, "max_total_tokens": 1}
    second = await carry_out(plan, replay="strict", recordings=recordings, **limits)
    assert measured(first) == measured(second)
    assert sum(record.spent.cost or 0 for record in second) == pytest.approx(0.01)
    more = await carry_out(plan_of(model_spec(), cases=7), replay="auto", recordings=recordings, jobs=1, **limits)
    assert sorted(record.verdict for record in more) == [Verdict.BUDGET, *[Verdict.PASS] * 6]


async def test_record_asks_everything_again_and_writes_over_what_was_there(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    provider.then(Act(say="no"))
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    [record] = await carry_out(plan_of(model_spec()), replay="strict", recordings=recordings)
    assert len(provider.received) == 2
    assert record.transcript is not None
    assert record.transcript.output == "no"
    assert len(list(recordings.rglob("*.json"))) == 1


async def test_off_neither_reads_nor_writes(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    await carry_out(plan_of(model_spec()), replay="off", recordings=recordings)
    assert not recordings.exists()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"case": "c0"}', b"\xff\xfe"], ids=str)
async def test_a_damaged_recording_is_an_error_that_names_the_file(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path, damage: bytes
) -> None:
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    [path] = recordings.rglob("*.json")
    path.write_bytes(damage)
    for mode in ("strict", "auto"):
        [record] = await carry_out(plan_of(model_spec()), replay=mode, recordings=recordings)
        assert record.verdict is Verdict.INFRA
        assert record.failure is not None
        assert f"recording {path} cannot be read, delete it" in record.failure.message
        assert record.failure.permanent
    assert len(provider.received) == 1


async def test_a_damaged_recording_beside_does_not_hide_what_changed(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    await carry_out(plan_of(model_spec(), cases=2), replay="record", recordings=recordings)
    (recordings / "00").mkdir(exist_ok=True)
    (recordings / "00" / "damaged.json").write_bytes(b"{")
    records = await carry_out(plan_of(model_spec(seed=4), cases=2), replay="strict", recordings=recordings)
    assert all(record.failure and '"seed": 4' in record.failure.message for record in records)


async def test_an_answer_that_cannot_be_read_back_is_a_clear_error(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    [path] = recordings.rglob("*.json")
    path.write_text(path.read_text().replace('"part_kind": "text"', '"part_kind": "nonsense"'))
    [record] = await carry_out(plan_of(model_spec()), replay="strict", recordings=recordings)
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert f"recording {path} cannot be read, delete it" in record.failure.message


async def test_no_secret_is_in_a_recording(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    provider.then(Act(say=f"the key is {KEY}", think=f"shall I say {KEY}?"))
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    [path] = recordings.rglob("*.json")
    assert KEY not in path.read_text()
    assert "[redacted LOOPBACK_API_KEY]" in path.read_text()


async def test_a_failed_call_is_not_recorded(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    provider.then(Act(status=500, body={"error": {"message": "no"}}))
    await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    assert len(list(recordings.rglob("*.json"))) == 1
    [record] = await carry_out(plan_of(model_spec()), replay="strict", recordings=recordings)
    assert record.verdict is Verdict.PASS


async def test_usage_that_was_unknown_is_unknown_in_the_replay(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    provider.then(Act(usage=None))
    first = await carry_out(plan_of(model_spec()), replay="record", recordings=recordings)
    second = await carry_out(plan_of(model_spec()), replay="strict", recordings=recordings)
    assert measured(first) == measured(second)
    assert second[0].transcript is not None
    assert second[0].transcript.metadata["unmeasured"] == 1


def tools_that_count() -> tuple[Registry, list[Any]]:
    called: list[Any] = []

    async def find(given: Mapping[str, JsonValue]) -> JsonValue:
        called.append(given)
        return {"id": given["id"], "usage": None, "timestamp": 5, "text": "naïve ✓"}

    schema: dict[str, JsonValue] = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    tool = Tool("find", "Finds", schema, find)
    return default_registry().with_tools(lambda *_: (tool,)), called


async def test_a_conversation_with_tools_is_replayed_and_its_tools_called_again(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    provider.then(
        Act(think="hm", calls=(("find", {"id": 1}), ("find", {"id": 2}))),
        Act(say="one more", calls=(("find", {"id": 3}),)),
    )
    registry, called = tools_that_count()
    plan = plan_of(model_spec(kind="agent"))
    first = await carry_out(plan, registry=registry, replay="record", recordings=recordings)
    provider.stop()
    second = await carry_out(plan, registry=registry, replay="strict", recordings=recordings)
    assert measured(first) == measured(second)
    assert called == [{"id": 1}, {"id": 2}, {"id": 3}] * 2
    assert second[0].spent.requests == 3
    steps = [record.transcript.steps for record in (first[0], second[0]) if record.transcript]
    said = [
        [[part.model_dump(exclude={"started", "duration_ms"}) for part in step.parts] for step in talk]
        for talk in steps
    ]
    assert said[0] == said[1]


async def test_what_a_tool_said_is_part_of_the_next_question_whatever_its_keys_are_called(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    """`id`, `usage`, `timestamp` of a message do not last; in what a tool or a model says they are content."""
    answers: dict[str, JsonValue] = {"id": 1, "usage": "a", "timestamp": None}

    async def look(given: Mapping[str, JsonValue]) -> JsonValue:
        return dict(answers)

    tool = Tool("look", "Looks", {"type": "object", "properties": {}}, look)
    registry = default_registry().with_tools(lambda *_: (tool,))
    provider.plan = lambda request: Act() if len(request.body["messages"]) > 1 else Act(calls=(("look", {}),))
    plan = plan_of(model_spec(kind="agent"))
    await carry_out(plan, registry=registry, replay="record", recordings=recordings)
    for key, value in (("id", 2), ("usage", "b"), ("timestamp", 7)):
        before = answers[key]
        answers[key] = value
        [record] = await carry_out(plan, registry=registry, replay="strict", recordings=recordings)
        assert record.verdict is Verdict.INFRA, key
        answers[key] = before
    del answers["timestamp"]
    [record] = await carry_out(plan, registry=registry, replay="strict", recordings=recordings)
    assert record.verdict is Verdict.INFRA


async def test_a_tool_of_another_shape_is_another_question(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    async def look(given: Mapping[str, JsonValue]) -> JsonValue:
        return None

    def with_property(name: str) -> Registry:
        schema: dict[str, JsonValue] = {"type": "object", "properties": {name: {"type": "string"}}}
        tool = Tool("look", "Looks", schema, look)
        return default_registry().with_tools(lambda *_: (tool,))

    plan = plan_of(model_spec(kind="agent"))
    await carry_out(plan, registry=with_property("id"), replay="record", recordings=recordings)
    [same] = await carry_out(plan, registry=with_property("id"), replay="strict", recordings=recordings)
    [other] = await carry_out(plan, registry=with_property("signature"), replay="strict", recordings=recordings)
    assert (same.verdict, other.verdict) == (Verdict.PASS, Verdict.INFRA)


async def test_google_which_gives_calls_no_ids_is_replayed_too(
    provider: Loopback, carry_out: CarryOut, recordings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_BASE_URL", provider.url)
    provider.then(Act(calls=(("find", {"id": 1}),)), Act(calls=(("find", {"id": 2}),)))
    registry, _ = tools_that_count()
    plan = plan_of(SubjectSpec(kind="agent", name="g", options={"model": "google:gemini-2.5-flash"}))
    first = await carry_out(plan, registry=registry, replay="record", recordings=recordings)
    provider.stop()
    second = await carry_out(plan, registry=registry, replay="strict", recordings=recordings)
    assert first[0].verdict is Verdict.PASS
    assert measured(first) == measured(second)


async def test_many_misses_are_explained_in_a_moment(
    provider: Loopback, carry_out: CarryOut, model_spec: MakeSpec, recordings: Path
) -> None:
    cases = tuple(Case(id=f"c{n}", prompt=f"question {n} " + "x" * 2000, expected="yes") for n in range(100))
    plan = plan_of(model_spec()).model_copy(update={"cases": cases})
    assert isinstance(plan, Plan)
    await carry_out(plan, replay="record", recordings=recordings, jobs=20)
    other = plan_of(model_spec(seed=3)).model_copy(update={"cases": cases})
    records = await carry_out(other, replay="strict", recordings=recordings)
    assert all(
        record.failure and f"(case {record.case!r}, round 1), differs in" in record.failure.message
        for record in records
    )
