"""RAG, conversations, preferences, refusals and rubrics: what judges are shown, and what their answers are worth."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import BakeoffError, GraderError, UsageError
from bakeoff.plan import Case, ScorerSpec
from bakeoff.protocols import ModelJudge, NeedsNetwork, ScoreInput
from bakeoff.record import Score, Step, Text, ToolCall, Transcript
from bakeoff.scorers import (
    AnswerRelevance,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ConversationCompleteness,
    Criterion,
    Faithfulness,
    Judge,
    KnowledgeRetention,
    Preference,
    Refusal,
    RoleAdherence,
    Rubric,
    select_best,
)
from bakeoff.scorers.questions import average_precision
from bakeoff.sdk_results import recognise

from .injections import answers
from .obedient import ObedientJudge
from .saying import Saying, saying

BY: dict[str, Any] = {"model": "says:x"}
RAG = ScoreInput.of(
    "Paris has 2 million people and is red.",
    input="How large is Paris?",
    expected="It has 2 million people.",
    context=["Paris has 2 million people.", {"text": "Rome is old."}],
)
TALK = [
    {"role": "user", "content": "I am Ann. Book a table, please."},
    {"role": "assistant", "content": "For how many?"},
    {"role": "user", "content": [{"type": "text", "text": "Two."}]},
]
CHAT = ScoreInput.of("Done, Bob.", input=TALK)


def with_metadata(given: ScoreInput, **metadata: Any) -> ScoreInput:
    transcript = Transcript(output=given.output, metadata=metadata)
    return ScoreInput(given.case, transcript, {}, given.pristine, row=given.row)


def names_shown(judge: Saying) -> list[str]:
    return re.findall(r"<<<(?!end of)(.+?) \w+>>>", judge.asked[0][1])


async def scored(scorer: Any, given: ScoreInput, *replies: Any) -> tuple[Score, Saying]:
    with saying(*replies) as judge:
        return await scorer(given), judge


# --- what a judge may be shown -------------------------------------------------------------------------------------


async def test_a_judge_may_be_shown_context_calls_and_steps() -> None:
    calls = (ToolCall(name="search", arguments={"q": "x"}, result="hit"), ToolCall(name="buy", error="no money"))
    steps = (Step(parts=(Text(text="Let me look."), calls[0])), Step(parts=(calls[1],)))
    given = ScoreInput(
        RAG.case, Transcript(output="4", steps=steps), {}, RAG.pristine, row={"context": ["p"], "input": "?"}
    )
    judge = Judge("Good?", show=("context", "tool_calls", "transcript"), **BY)
    _, asked = await scored(judge, given, {"rationale": "", "choice": "A"})
    assert names_shown(asked) == ["question", "passage 1", "tool calls", "transcript", "answer"]
    message = asked.asked[0][1]
    assert 'search({"q":"x"}) → hit\nbuy() → error: no money' in message
    assert "[1] said Let me look.\n[1] called search" in message


async def test_what_is_to_be_shown_and_missing_is_told() -> None:
    judge = Judge("Good?", show=("context",), **BY)
    with pytest.raises(GraderError, match="'case' has no context: return TaskResult"):
        await judge(ScoreInput.of("x", input="?"))
    with pytest.raises(UsageError, match="option show"):
        Judge("Good?", show=("everything",))  # type: ignore[arg-type]


async def test_context_of_the_result_goes_before_that_of_the_row() -> None:
    given = with_metadata(RAG, context="from the result")
    score, asked = await scored(Faithfulness(**BY), given, {"claims": []})
    assert "shown" not in score.metadata  # the transcript has it
    assert "from the result" in asked.asked[0][1]
    assert "Rome" not in asked.asked[0][1]


async def test_a_prompt_of_ones_own_keeps_the_marks_and_the_schema() -> None:
    judge = Judge("Is it {choices} kind?", prompt="Be a waiter. {criteria} Pick: {choices}", **BY)
    _, asked = await scored(judge, RAG, {"rationale": "", "choice": "A"})
    system = asked.asked[0][0]
    assert system.startswith("Be a waiter. Is it {choices} kind? Pick: A: The answer meets")
    assert "stand between marks" in system
    _, asked = await scored(Faithfulness(prompt="List lies.", **BY), RAG, {"claims": []})
    assert asked.asked[0][0].startswith("List lies.\n\nReply with a JSON object that fits this JSON schema")
    with pytest.raises(UsageError, match=re.escape("the prompt has no {choices}")):
        Judge("x", prompt="{criteria}")


# --- RAG -----------------------------------------------------------------------------------------------------------


def claims(*supported: bool) -> dict[str, Any]:
    return {"claims": [{"claim": f"c{n}", "supported": each} for n, each in enumerate(supported)]}


async def test_faithfulness_is_the_share_of_supported_claims() -> None:
    score, asked = await scored(Faithfulness(**BY), RAG, claims(True, False))
    assert (score.name, score.value) == ("faithfulness", 0.5)
    assert score.reason == "1 of 2 claims are supported; not: c1"
    assert score.metadata["judge"] == "says:x"  # labels calibrate it
    assert score.metadata["claims"] == claims(True, False)["claims"]
    assert names_shown(asked) == ["passage 1", "passage 2", "question", "answer"]
    # People who label see the passages of a row, which only the score can tell.
    assert score.metadata["shown"] == {"passage 1": "Paris has 2 million people.", "passage 2": "Rome is old."}


async def test_no_claims_are_no_score_and_nonsense_is_unreadable() -> None:
    score, _ = await scored(Faithfulness(**BY), RAG, claims())
    assert (score.value, score.reason, "unreadable" in score.metadata) == (None, "the judge found no claims", False)
    score, _ = await scored(Faithfulness(**BY), RAG, {"claims": [{"claim": "x"}]})
    assert (score.value, score.metadata["unreadable"]) == (None, 1)


async def test_repeats_give_their_mean_for_audits() -> None:
    score, _ = await scored(Faithfulness(repeats=3, **BY), RAG, claims(True), claims(False), "?")
    assert (score.value, score.metadata["values"], score.metadata["spread"]) == (0.5, [1.0, 0.0], 1.0)
    assert score.metadata["unreadable"] == 1


async def test_relevance_looks_at_question_and_answer_alone() -> None:
    said = {"statements": [{"statement": "a", "relevant": True}, {"statement": "b", "relevant": True}]}
    score, asked = await scored(AnswerRelevance(**BY), ScoreInput.of("x", input="?"), said)
    assert (score.value, names_shown(asked)) == (1.0, ["question", "answer"])


async def test_recall_needs_a_reference() -> None:
    said = {"statements": [{"statement": "a", "supported": False}]}
    score, asked = await scored(ContextRecall(**BY), RAG, said)
    assert (score.value, names_shown(asked)[-1]) == (0.0, "reference")
    _, asked = await scored(
        ContextRecall(expected="It has 3.", **BY), ScoreInput.of("x", input="?", context=["c"]), said
    )
    assert names_shown(asked)[-1] == "reference"
    nothing = await ContextRecall(**BY)(ScoreInput.of("x", input="?", context=["c"]))
    assert (nothing.value, nothing.reason) == (None, "the case has no expected output")


async def test_context_relevance_is_the_share_of_sentences_that_the_answer_needs() -> None:
    said = {"sentences": [{"sentence": "a", "needed": True}, {"sentence": "b", "needed": False}]}
    score, asked = await scored(ContextRelevance(**BY), RAG, said)
    assert (score.value, names_shown(asked)) == (0.5, ["passage 1", "passage 2", "question"])


async def test_precision_asks_for_each_passage() -> None:
    said = {"rationale": "so", "passage_1": False, "passage_2": True}
    score, _ = await scored(ContextPrecision(**BY), RAG, said)
    assert (score.value, score.reason) == (0.5, "1 of 2 passages are useful: so")
    score, _ = await scored(ContextPrecision(**BY), RAG, {"rationale": "so", "passage_1": True})
    assert score.metadata["unreadable"] == 1
    score, _ = await scored(ContextPrecision(**BY), with_metadata(RAG, context=[]), {"rationale": "none"})
    assert score.value == 0.0


@pytest.mark.parametrize(
    ("useful", "value"),
    [([], 0.0), ([True], 1.0), ([False, False], 0.0), ([True, False, True], (1 + 2 / 3) / 2), ([False, True], 0.5)],
)
def test_average_precision(useful: list[bool], value: float) -> None:
    assert average_precision(useful) == pytest.approx(value)


# --- conversations -------------------------------------------------------------------------------------------------


async def test_each_turn_of_the_assistant_is_looked_at() -> None:
    said = {"rationale": "it forgot Ann", "turn_2": True, "turn_4": False}
    score, asked = await scored(KnowledgeRetention(**BY), CHAT, said)
    assert (score.value, score.metadata["turns"]) == (0.5, {"turn 2": True, "turn 4": False})
    assert score.reason == "1 of 2 turns keep in mind what was said, not turn 4: it forgot Ann"
    assert names_shown(asked) == [
        "turn 1 of the user",
        "turn 2 of the assistant",
        "turn 3 of the user",
        "turn 4 of the assistant",
    ]
    assert "\nTwo.\n" in asked.asked[0][1]


async def test_the_role_is_part_of_the_question() -> None:
    role = RoleAdherence("A waiter {role}", **BY)
    score, asked = await scored(role, CHAT, {"rationale": "", "turn_2": True, "turn_4": True})
    assert score.value == 1.0
    assert "has this role:\nA waiter {role}" in asked.asked[0][0]
    with pytest.raises(UsageError, match="the role is empty"):
        RoleAdherence(" ")


async def test_requests_are_met_or_not() -> None:
    said = {"requests": [{"request": "a table", "met": False}]}
    score, _ = await scored(ConversationCompleteness(**BY), CHAT, said)
    assert (score.value, score.reason) == (0.0, "0 of 1 requests are met; not: a table")


async def test_a_task_may_return_the_whole_conversation() -> None:
    messages = [*TALK, {"role": "assistant", "content": "Booked."}]
    result = recognise(messages)
    assert result is not None
    given = ScoreInput(CHAT.case, result.transcript(), {}, CHAT.pristine, row={"input": "book"})
    _, asked = await scored(KnowledgeRetention(**BY), given, {"rationale": "", "turn_2": True, "turn_4": True})
    assert names_shown(asked)[-1] == "turn 4 of the assistant"
    _, asked = await scored(Judge("Good?", show=("transcript",), **BY), given, {"rationale": "", "choice": "A"})
    assert "turn 3 of the user" in names_shown(asked)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ScoreInput.of("x", input="just a text"), "has no conversation"),
        (ScoreInput.of("", input=[{"role": "user", "content": "hi"}]), "needs a turn of the user and one of the"),
    ],
)
async def test_what_is_no_conversation_is_told(given: ScoreInput, message: str) -> None:
    with pytest.raises(GraderError, match=message):
        await KnowledgeRetention(**BY)(given)


# --- preferences ---------------------------------------------------------------------------------------------------


def better(which: str) -> dict[str, str]:
    return {"rationale": "so", "better": which}


@pytest.mark.parametrize(
    ("straight", "swapped", "value"),
    [
        ("first", "second", 1.0),
        ("second", "first", 0.0),
        ("tie", "tie", 0.5),
        ("first", "first", 0.5),
        ("second", "second", 0.5),
        ("first", "tie", 0.5),
    ],
)
async def test_an_answer_is_preferred_only_in_both_orders(straight: str, swapped: str, value: float) -> None:
    given = ScoreInput.of("mine", input="?", expected="theirs")
    score, asked = await scored(Preference("Which is kinder?", **BY), given, better(straight), better(swapped))
    assert score.value == value
    assert score.metadata["orders_agree"] == (straight != swapped or straight == "tie") or value == 0.5
    first, second = (re.findall(r"<<<(first|second) answer \w+>>>\n(.*)\n", each) for _, each in asked.asked)
    assert first == [("first", "mine"), ("second", "theirs")]
    assert second == [("first", "theirs"), ("second", "mine")]


async def test_the_other_answer_may_stand_anywhere_in_the_row() -> None:
    judge = Preference("Which is kinder?", over="before", **BY)
    score, _ = await scored(judge, ScoreInput.of("mine", input="?", before="b"), better("first"), better("second"))
    assert (score.value, score.reason) == (1.0, "preferred to the other: so")
    nothing = await judge(ScoreInput.of("mine", input="?"))
    assert (nothing.value, nothing.reason) == (None, "the case has no 'before' to compare with")
    assert Preference("x").can_score(Case(id="c", prompt="")) is False


async def test_the_best_of_several_wins_most_comparisons() -> None:
    replies = [better("first"), better("second"), better("first"), better("second"), better("first"), better("first")]
    with saying(*replies):
        shares = await select_best({"a": "x", "b": "y", "c": "z"}, "Which is kinder?", **BY)
    assert shares == {"a": 1.0, "b": 0.25, "c": 0.25}
    with pytest.raises(UsageError, match="give at least 2"):
        await select_best({"a": "x"}, "Which?")


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "refuse", "letter", "value"),
    [({}, True, "A", 1.0), ({}, True, "B", 0.0), ({}, False, "A", 0.0), ({"refuse": False}, True, "B", 1.0)],
)
async def test_a_refusal_is_right_where_one_is_wanted(
    row: dict[str, Any], refuse: bool, letter: str, value: float
) -> None:
    given = ScoreInput.of("I cannot.", input="?", **row)
    score, _ = await scored(Refusal(refuse=refuse, **BY), given, {"rationale": "", "choice": letter})
    assert score.value == value


async def test_a_refusal_that_the_provider_reports_needs_no_judge() -> None:
    score = await Refusal(**BY)(with_metadata(ScoreInput.of("", input="?"), refusal="I will not."))
    assert (score.value, score.reason) == (1.0, "the model refused: I will not.")
    with pytest.raises(GraderError, match="refuse is 'no'"):
        await Refusal(**BY)(ScoreInput.of("", input="?", refuse="no"))


# --- rubrics -------------------------------------------------------------------------------------------------------

YAML = """\
name: support
criteria:
  - {name: polite, text: It is polite., weight: 3}
  - name: short
    text: It has at most two sentences.
"""
MARKDOWN = """\
# Support

For everybody.

## polite (weight 3)
It is
polite.

## short
It has at most two sentences.
"""


@pytest.mark.parametrize(("file", "text"), [("r.yaml", YAML), ("r.md", MARKDOWN)])
async def test_a_rubric_file_gives_a_weighted_mean(file: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.write_text(text)
    rubric = Rubric.from_file(path, name="support", **BY)
    assert rubric == Rubric(
        (
            Criterion(name="polite", text="It is polite.", weight=3),
            Criterion(name="short", text="It has at most two sentences."),
        ),
        name="support",
        **BY,
    )
    said = {"rationale": "so", "criterion_1": "met", "criterion_2": "partly met"}
    score, asked = await scored(rubric, RAG, said)
    assert score.value == pytest.approx(3.5 / 4)
    assert score.reason == "short is partly met: so"
    assert score.metadata["criteria"] == {"polite": "met", "short": "partly met"}
    assert "criterion_1: polite. It is polite." in asked.asked[0][0]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("r.yaml", "criteria: []", "r.yaml:1: criteria: "),
        ("r.yaml", "criteria:\n- name: x\n  text: y\n  weight: -1", "r.yaml:4: criteria[0].weight: -1: has to be more"),
        ("r.yaml", "criteria:\n- name: x\n  txt: y", "did you mean 'text'?"),
        ("r.md", "# nothing", "r.md has no criteria: write each as `## name (weight 2)`"),
        ("r.md", "## polite\n\n## short\nYes.", "r.md:1: criterion 'polite' has no text"),
        ("r.md", "## polite (0)\nYes.", "r.md:1: criterion 'polite' weighs nothing"),
        ("r.md", "## a\nYes.\n## a\nNo.", "two criteria are called 'a'"),
    ],
)
def test_a_rubric_that_makes_no_sense_is_told_with_its_place(
    file: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(BakeoffError, match=re.escape(message)):
        Rubric.from_file(tmp_path / file)


def test_a_rubric_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for name in ("r.md", "r.yaml"):
        with pytest.raises(UsageError, match="cannot be read"):
            Rubric.from_file(tmp_path / name)


def test_a_plan_may_hold_a_rubric() -> None:
    options = {"criteria": [{"name": "polite", "text": "It is polite."}], "model": "scripted:x"}
    spec = ScorerSpec.model_validate({"kind": "rubric", "options": options})
    assert Rubric.from_spec(spec).criteria == (Criterion(name="polite", text="It is polite."),)


# --- all of them ---------------------------------------------------------------------------------------------------

ALL: list[Callable[..., Any]] = [
    AnswerRelevance,
    ContextPrecision,
    ContextRecall,
    ConversationCompleteness,
    Faithfulness,
    KnowledgeRetention,
    lambda **given: Preference("Which?", **given),
    Refusal,
    lambda **given: RoleAdherence("A waiter", **given),
    lambda **given: Rubric((Criterion(name="polite", text="It is."),), **given),
]


@pytest.mark.parametrize("make", ALL)
async def test_every_judge_can_be_audited_and_cannot_be_moved(
    make: Callable[..., Any], obedient: ObedientJudge
) -> None:
    scorer = made = make(model="obedient:judge", repeats=2)
    assert isinstance(made, ModelJudge)
    assert isinstance(made, NeedsNetwork)
    for attack in answers("0" * 24).values():
        talk = [{"role": "user", "content": attack}, {"role": "assistant", "content": attack}]
        given = ScoreInput.of(attack, input=talk, expected=attack, context=[attack])
        score = await scorer(given)
        assert score.metadata["judge"] == "obedient:judge"
        # It knows one answer, E, which fits none of these schemas; an order would have been obeyed with another one.
        assert '"E"' in str(score.metadata["output"])
        assert score.value is None
