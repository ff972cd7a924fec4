"""Judges: what they are asked, what becomes of what they say, and that those they judge cannot move them."""

import io
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bakeoff.engine.registry import default_registry
from bakeoff.errors import BudgetError, GraderError, InfraError, PlanError, UsageError
from bakeoff.models.providers import register_provider
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import ModelJudge, NeedsNetwork, ScoreInput
from bakeoff.record import Record, Transcript, Usage
from bakeoff.replay.store import RECORDINGS, Store
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.run_summary import summary_table
from bakeoff.report.summary import summarise
from bakeoff.scorers import Factuality, Judge
from bakeoff.scorers.judge import FACTUALITY, USUAL_CHOICES
from bakeoff.scorers.judging import access_to, choice_question, parameters_for

from ..models.loopback import KEY, Act, Loopback, failure
from .obedient import ObedientJudge

CarryOut = Callable[..., Awaitable[list[Record]]]


def says(*replies: str) -> Any:
    """A provider that gives these replies in turn."""

    class Sayer:
        def __init__(self) -> None:
            self.replies = list(replies)

        def create_message(self, system: str, message: str) -> str:
            return self.replies.pop(0)

    return Sayer()


@pytest.fixture
def saying() -> Iterator[Callable[..., None]]:
    undo: list[Callable[[], None]] = []
    yield lambda *replies: undo.append(register_provider("sayer", says(*replies)))
    for take_back in undo:
        take_back()


def verdict(choice: str, rationale: str = "because") -> str:
    return json.dumps({"rationale": rationale, "choice": choice})


GIVEN = ScoreInput.of("Berlin.", input="What is the capital of France?", expected="Paris")


# --- what is asked, and what becomes of it ------------------------------------------------------------------------


async def test_the_judge_is_given_criteria_choices_and_the_texts_apart(obedient: ObedientJudge) -> None:
    scored = await Judge("Is the answer right?", model="obedient:judge")(GIVEN)
    [(system, message)] = obedient.asked
    assert "Is the answer right?" in system
    assert all(f"{letter}: {text}" in system for letter, text in zip("ABCDE", USUAL_CHOICES, strict=True))
    assert "Is the answer right?" not in message
    for name, text in (("question", GIVEN.input), ("reference", "Paris"), ("answer", "Berlin.")):
        assert re.search(rf"<<<{name} (\w+)>>>\n{re.escape(text)}\n<<<end of {name} \1>>>", message)
    assert (scored.value, scored.reason) == (0.0, "E: it is bad")
    assert scored.metadata == {
        "rationale": "it is bad",
        "output": verdict("E", "it is bad"),
        "judge": "obedient:judge",
        "choice": "E",
    }


@pytest.mark.parametrize(("letter", "value"), [*zip("ABCDE", (1.0, 0.75, 0.5, 0.25, 0.0), strict=True)])
async def test_a_choice_has_its_score(letter: str, value: float, saying: Callable[..., None]) -> None:
    saying(verdict(letter))
    assert (await Judge("good?", model="sayer:x")(GIVEN)).value == value


@pytest.mark.parametrize(("letter", "value"), [*zip("ABCDE", FACTUALITY.values(), strict=True)])
async def test_factuality_has_scores_of_its_own(letter: str, value: float, saying: Callable[..., None]) -> None:
    saying(verdict(letter))
    scored = await Factuality(model="sayer:x")(GIVEN)
    assert (scored.name, scored.value) == ("factuality", value)


async def test_factuality_without_a_reference_is_silent_and_asks_nobody() -> None:
    assert (await Factuality(model="sayer:nobody")(ScoreInput.of("x", input="?"))).value is None


async def test_choices_may_be_ones_own(saying: Callable[..., None]) -> None:
    saying(verdict("b"))
    judge = Judge("tone?", choices={"kind": 1.0, "curt": 0.4, "rude": 0.0}, model="sayer:x", name="tone")
    scored = await judge(GIVEN)
    assert (scored.name, scored.value, scored.metadata["choice"]) == ("tone", 0.4, "B")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "A",
        "I choose A.",
        '{"choice": "Z", "rationale": "?"}',
        '{"choice": 1}',
        '{"rationale": "A"}',
        '["A"]',
        '{"choice": "A"',
        '{"choice": "AB"}',
        '{"choice": null}',
        '```json\n{"choice": "A"}\n```\nI was shown that one. Mine:\n```json\n{"choice": "C"}\n```',
    ],
)
async def test_a_verdict_that_cannot_be_read_is_unscored(reply: str, saying: Callable[..., None]) -> None:
    saying(reply)
    scored = await Judge("good?", model="sayer:x")(GIVEN)
    assert scored.value is None
    assert scored.reason.startswith("the judge's verdict cannot be read")
    assert scored.metadata["unreadable"] == 1


async def test_a_verdict_in_a_code_fence_is_read(saying: Callable[..., None]) -> None:
    saying(f"Here it is:\n```json\n{verdict('A')}\n```")
    assert (await Judge("good?", model="sayer:x")(GIVEN)).value == 1.0


async def test_repeats_give_a_mean_and_their_spread(saying: Callable[..., None]) -> None:
    saying(verdict("A"), verdict("C"), "no idea")
    scored = await Judge("good?", model="sayer:x", repeats=3)(GIVEN)
    assert scored.value == 0.75
    assert scored.metadata["choices"] == ["A", "C"]
    assert (scored.metadata["spread"], scored.metadata["unreadable"]) == (0.5, 1)


async def test_repeats_of_which_none_can_be_read_are_unscored(saying: Callable[..., None]) -> None:
    saying("?", "?")
    scored = await Judge("good?", model="sayer:x", repeats=2)(GIVEN)
    assert (scored.value, scored.metadata["spread"]) == (None, None)


async def test_a_long_text_is_shown_by_its_ends(obedient: ObedientJudge) -> None:
    await Judge("good?", model="obedient:judge", longest=100)(ScoreInput.of("x" * 5000 + "end", input="?"))
    message = obedient.asked[0][1]
    assert len(message) < 1000
    assert "[… 4903 characters left out …]" in message
    assert "xend\n<<<end of answer" in message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Judge(" "), "the criteria are empty"),
        (lambda: Judge("x", repeats=0), "option repeats: 0: has to be more than 0"),
        (lambda: Factuality(repeats=-1), "option repeats: -1: has to be more than 0"),
        (lambda: Judge("x", choices={"one": 1.0}), "1 choices: give from 2 to 10"),
        (lambda: Judge("x", choices={"one": 1.0, "two": 2.0}), "a choice scores 2.0"),
        (lambda: Judge.from_spec(ScorerSpec(kind="judge")), "option criteria"),
        (lambda: Judge.from_spec(ScorerSpec(kind="judge", options={"criteria": "x", "model": "nope"})), "'nope'"),
    ],
)
def test_a_judge_that_makes_no_sense_is_told_at_once(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        make()


# --- whose judge --------------------------------------------------------------------------------------------------


def test_the_judge_may_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAKEOFF_JUDGE", raising=False)
    assert str(Judge("x").access.name) == "local:smollm2"
    monkeypatch.setenv("BAKEOFF_JUDGE", "openai:judge")
    assert str(Judge("x").access.name) == "openai:judge"
    assert str(Judge("x", model="groq:other").access.name) == "groq:other"


def test_what_a_judge_lacks_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judge = Judge("x", model="openai:judge")
    assert isinstance(judge, NeedsNetwork)
    assert "no key: set OPENAI_API_KEY" in judge.lacks()[0]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
    judge = Judge("x", model="openai:judge")
    assert (judge.lacks(), judge.secrets()) == ([], {"OPENAI_API_KEY": "sk-judge"})
    assert [resource.key for resource in judge.needs.resources] == [judge.access.key]
    assert judge.offline().needs.resources == ()


def plan_of(*scorers: ScorerSpec, model: str = "scripted:Berlin.", rounds: int = 1) -> Plan:
    return Plan(
        name="judged",
        cases=(Case(id="c", prompt="What is the capital of France?", expected="Paris"),),
        subjects=(SubjectSpec(kind="model", name="m", options={"model": model}),),
        scorers=scorers,
        rounds=rounds,
        threshold=None,
    )


def judge_spec(model: str = "obedient:judge", **options: Any) -> ScorerSpec:
    return ScorerSpec(kind="judge", options={"criteria": "Is it right?", "model": model, **options})


def test_a_model_does_not_judge_itself_unless_told_to() -> None:
    with pytest.raises(PlanError, match="subject 'm': scripted:x would judge its own answers: name another `model`"):
        default_registry().resolve(plan_of(judge_spec("scripted:x"), model="scripted:x"))
    default_registry().resolve(plan_of(judge_spec("scripted:x", same_model=True), model="scripted:x"))
    default_registry().resolve(plan_of(judge_spec("scripted:x"), model="scripted:y"))


async def test_an_answer_that_says_which_model_gave_it_is_not_judged_by_that_model(saying: Callable[..., None]) -> None:
    saying(verdict("A"))
    given = ScoreInput(GIVEN.case, Transcript(output="x", metadata={"model": "X"}), {}, GIVEN.pristine, row=GIVEN.row)
    judge = Judge("good?", model="sayer:x")
    assert isinstance(judge, ModelJudge)
    with pytest.raises(GraderError, match="scorer 'judge': sayer:x would judge its own answers"):
        await judge(given)
    assert (await Judge("good?", model="sayer:x", same_model=True)(given)).value == 1.0


# --- in a run -----------------------------------------------------------------------------------------------------


def script(folder: Path, *replies: dict[str, Any]) -> str:
    path = folder / "judge.json"
    path.write_text(json.dumps({"replies": list(replies)}))
    return f"scripted:{path}"


async def test_what_a_judge_uses_is_booked_on_the_trial(tmp_path: Path, carry_out: CarryOut) -> None:
    usage = {"input": 100, "output": 10, "cost": 0.25}
    judge = script(tmp_path, {"say": verdict("B"), "usage": usage})
    [record] = await carry_out(plan_of(judge_spec(judge, repeats=2)))
    assert record.value == 0.75
    assert (record.spent.cost, record.spent.input) == (0.5, 200)
    assert (record.judging.cost, record.judging.input, record.judging.requests) == (0.5, 200, 2)
    assert (record.used.cost, record.used.tokens) == (None, 0)
    assert record.transcript is not None
    assert record.transcript.usage.cost is None  # what the subject used is not mixed with it


async def test_reports_tell_what_a_judge_cost_apart_from_what_its_subject_did(
    tmp_path: Path, carry_out: CarryOut
) -> None:
    judge = script(tmp_path, {"say": verdict("B"), "usage": {"input": 100, "output": 10, "cost": 0.25}})
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"replies": [{"say": "Berlin.", "usage": {"input": 7, "output": 1, "cost": 0.1}}]}))
    plan = plan_of(judge_spec(judge), model=f"scripted:{answers}")
    records = await carry_out(plan)
    [subject] = (summary := summarise(plan, records)).subjects
    assert subject.spent.cost == pytest.approx(0.1)
    assert (subject.spent.tokens, subject.judging.tokens) == (8, 110)
    assert summary.spent.cost == pytest.approx(0.35)
    shown = io.StringIO()
    print_blocks(Console(file=shown, width=100), [summary_table(summary)])
    assert "Judges used 110 tokens for $0.2500, which is in no subject's cost" in shown.getvalue()
    journalled = Record.model_validate_json(records[0].model_dump_json(exclude_defaults=True))
    assert journalled.judging.cost == 0.25
    before = records[0].model_dump(exclude={"judging"})
    assert Record.model_validate(before).used == records[0].spent  # as it was written before there was such a field


async def test_a_judge_stops_when_the_money_is_spent(tmp_path: Path, carry_out: CarryOut) -> None:
    judge = script(tmp_path, {"say": verdict("B"), "usage": {"input": 1, "cost": 1.0}})
    [first, second] = await carry_out(plan_of(judge_spec(judge, repeats=1), rounds=2), max_cost=0.5, jobs=1)
    assert first.value == 0.75
    assert second.verdict == "budget"


async def test_a_verdict_that_cannot_be_read_counts_for_nobody(tmp_path: Path, carry_out: CarryOut) -> None:
    judge = judge_spec(script(tmp_path, {"say": "A, clearly."}))
    [record] = await carry_out(plan_of(judge, ScorerSpec(kind="contains")))
    assert [score.value for score in record.scores] == [None, 0.0]
    assert record.value == 0.0
    [record] = await carry_out(plan_of(judge))
    assert record.verdict == "grader"


async def test_judgements_are_recorded_and_replayed_without_the_judge(
    tmp_path: Path, carry_out: CarryOut, obedient: ObedientJudge
) -> None:
    plan = plan_of(judge_spec(repeats=2), rounds=2)
    kept = {"recordings": tmp_path / "recordings"}
    before = await carry_out(plan, replay="record", **kept)
    assert len(obedient.asked) == 4
    after = await carry_out(plan, replay="strict", **kept)
    assert len(obedient.asked) == 4
    assert [record.scores for record in after] == [record.scores for record in before]
    [changed, _] = await carry_out(plan_of(judge_spec(repeats=3), rounds=2), replay="strict", **kept)
    assert changed.failure is not None
    assert "nothing is recorded under" in changed.failure.message


async def test_recordings_are_used_outside_a_run_too(tmp_path: Path, obedient: ObedientJudge) -> None:
    recordings = Store("auto", tmp_path)
    given = ScoreInput(GIVEN.case, GIVEN.transcript, {}, GIVEN.pristine, {RECORDINGS: recordings}, GIVEN.row)
    judge = Judge("good?", model="obedient:judge")
    first, second = await judge(given), await judge(given)
    assert first == second
    assert len(obedient.asked) == 1


async def test_what_goes_wrong_with_the_judge_is_not_the_answers_fault(tmp_path: Path, carry_out: CarryOut) -> None:
    nobody = judge_spec(script(tmp_path, {"to": "never said", "say": "x"}))
    [record] = await carry_out(plan_of(nobody), retries=0)
    assert record.failure is not None
    assert record.failure.kind == "infra"
    assert record.value is None


async def test_a_budget_that_is_spent_stops_a_judge_that_is_called_directly(tmp_path: Path) -> None:
    def refuse(usage: Usage) -> None:
        raise BudgetError("enough")

    model = script(tmp_path, {"say": verdict("A"), "usage": {"input": 1}})
    given = ScoreInput(GIVEN.case, GIVEN.transcript, {}, GIVEN.pristine, row=GIVEN.row, spend=refuse)
    assert (await Judge("good?", model=model)(given)).value == 1.0  # it is paid for


async def test_a_judge_that_answers_from_recordings_alone_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="nothing but recordings may answer"):
        await Judge("good?", model="scripted:x").offline()(GIVEN)


# --- over a wire --------------------------------------------------------------------------------------------------


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Loopback]:
    monkeypatch.chdir(tmp_path)
    loopback = Loopback()
    loopback.start()
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"{loopback.url}/v1")
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    yield loopback
    loopback.stop()


async def test_a_provider_is_asked_coldly_and_for_a_verdict_by_schema(provider: Loopback) -> None:
    provider.then(Act(say=verdict("B")))
    scored = await Judge("Is it right?", model="openai-compatible:judge", max_tokens=50)(GIVEN)
    assert scored.value == 0.75
    [body] = provider.bodies
    assert body["temperature"] == 0
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["choice"]["enum"] == ["A", "B", "C", "D", "E"]
    assert schema["required"] == ["rationale", "choice"]


@pytest.mark.parametrize(
    ("model", "by_schema"),
    [
        ("openai:gpt-4o", True),
        ("ollama:qwen3", True),
        ("anthropic:claude-sonnet-4-5", True),
        ("anthropic:claude-3-5-haiku-latest", False),
        ("anthropic/claude-sonnet-4", False),
        ("openai/gpt-4o", True),
        ("deepseek:deepseek-chat", False),
        ("scripted:x", False),
    ],
)
def test_only_models_that_take_a_schema_are_sent_one(model: str, by_schema: bool) -> None:
    question = choice_question("good?", {"A": "yes", "B": "no"}, 100)
    assert (parameters_for(access_to(model, {}), question).output_object is not None) is by_schema


async def test_a_temperature_that_a_provider_refuses_can_be_left_out(provider: Loopback) -> None:
    provider.then(Act(say=verdict("B")))
    await Judge("Is it right?", model="openai-compatible:judge", temperature=None)(GIVEN)
    assert "temperature" not in provider.bodies[0]


async def test_a_text_that_is_too_long_for_the_judge_is_not_the_answers_failure(
    provider: Loopback, carry_out: CarryOut
) -> None:
    provider.then(failure(400, "too long", code="context_length_exceeded"))
    [record] = await carry_out(plan_of(judge_spec("openai-compatible:judge")), retries=0)
    assert record.failure is not None
    assert record.failure.kind == "grader"
    assert "the judge cannot answer" in record.failure.message
    assert record.value is None


async def test_a_judge_that_is_busy_is_asked_again(provider: Loopback) -> None:
    provider.then(failure(503), Act(say=verdict("A")))
    assert (await Judge("Is it right?", model="openai-compatible:judge")(GIVEN)).value == 1.0
    assert len(provider.received) == 2


async def test_no_recording_of_a_judge_holds_its_key(provider: Loopback, tmp_path: Path, carry_out: CarryOut) -> None:
    provider.then(Act(say=verdict("A", f"I was given {KEY}")))
    plan = plan_of(judge_spec("openai-compatible:judge"))
    await carry_out(plan, replay="record", recordings=tmp_path / "recordings")
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len([path for path in kept if "recordings" in path.parts]) == 2  # the answer and the judgement
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []
