"""`ask_judge`: typed answers by schema, texts between marks, and its place in a run."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Record
from bakeoff.scorers import ask_judge, function_scorer
from bakeoff.scorers.judging import Question, access_to, parameters_for

from .injections import answers
from .obedient import ObedientJudge
from .saying import saying

CarryOut = Callable[..., Awaitable[list[Record]]]


@dataclass
class Tone:
    polite: bool
    words: list[str]


async def test_the_answer_has_the_type_that_was_asked_for() -> None:
    with saying({"polite": True, "words": ["please"]}, {"answer": False}, {"answer": "b"}, {"score": 3}) as judge:
        assert await ask_judge("Is it polite?", Tone, texts={"letter": "Please."}, model="says:x") == Tone(
            True, ["please"]
        )
        assert await ask_judge("Is it?", bool, model="says:x") is False
        assert await ask_judge("Which?", Literal["a", "b"], model="says:x") == "b"
        schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
        assert await ask_judge("How many?", schema, model="says:x") == {"score": 3}
    system, message = judge.asked[0]
    assert system.startswith("Is it polite?")
    assert '"polite"' in system  # the schema, for models that know no other way
    assert re.search(r"<<<letter (\w+)>>>\nPlease.\n<<<end of letter \1>>>", message)
    assert "<<<" not in judge.asked[1][0] + judge.asked[1][1]  # without texts there are no marks


@pytest.mark.parametrize("said", ["no idea", '{"polite": "yes", "words": []}', '{"polite": true}', "[]"])
async def test_an_answer_that_does_not_fit_is_the_judges_fault(said: str) -> None:
    with saying(said), pytest.raises(GraderError, match="the judge's verdict cannot be read"):
        await ask_judge("Is it polite?", Tone, model="says:x")


@pytest.mark.parametrize(
    ("prompt", "schema", "texts", "message"),
    [
        (" ", bool, None, "the prompt is empty"),
        ("?", 5, None, "5 does not say what the answer is: give a type or a JSON schema"),
        ("?", {"type": "wrong"}, None, "give a type or a JSON schema: 'wrong' is not valid"),
        ("?", bool, "an answer", "texts are 'an answer': give each a name"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(prompt: str, schema: Any, texts: Any, message: str) -> None:
    with saying("{}"), pytest.raises(UsageError, match=message):
        await ask_judge(prompt, schema, texts=texts, model="says:x")


async def test_lists_are_numbered_texts_with_marks_of_their_own() -> None:
    with saying({"answer": True}) as judge:
        await ask_judge("?", bool, texts={"passage": ["one", {"two": 2}], "none": []}, model="says:x")
    message = judge.asked[0][1]
    assert re.findall(r"<<<(?!end)(.+?) \w+>>>\n(.*)\n", message) == [
        ("passage 1", "one"),
        ("passage 2", '{"two":2}'),
        ("none", "(none)"),
    ]


async def test_no_text_moves_a_judge_that_obeys_what_stands_outside(obedient: ObedientJudge) -> None:
    schema = {"type": "object", "required": ["choice"]}
    for attack in answers("0" * 24).values():
        found = await ask_judge("Is it right?", schema, texts={"answer": attack}, model="obedient:judge")
        assert found["choice"] == "E", attack


def test_the_embedded_model_is_given_bounds() -> None:
    schema = {"type": "object", "properties": {"claims": {"type": "array", "items": {"type": "string"}}}}
    parameters = parameters_for(access_to("local:smollm2", {}), Question("?", schema))
    assert parameters.output_object is not None
    claims = parameters.output_object.json_schema["properties"]["claims"]
    assert claims["maxItems"] > 1
    assert claims["items"]["maxLength"] > 50
    plain = parameters_for(access_to("openai:gpt-4o", {}), Question("?", schema)).output_object
    assert plain is not None
    assert plain.json_schema == schema


async def polite(given: ScoreInput) -> bool:
    """A scorer of the user that asks a judge."""
    return await ask_judge("Is the answer polite?", bool, texts={"answer": given.output}, model="says:x")


def hurried(given: ScoreInput) -> Any:
    """A scorer that asks on a loop of its own."""
    import asyncio

    return asyncio.run(polite(given))


def plan_of(scorer: Callable[..., Any]) -> Plan:
    return Plan(
        name="asked",
        cases=(Case(id="c", prompt="Hello?"),),
        subjects=(SubjectSpec(kind="model", name="m", options={"model": "scripted:Hello."}),),
        scorers=(function_scorer(scorer),),
        threshold=None,
    )


async def test_in_a_scorer_it_belongs_to_the_run(carry_out: CarryOut, tmp_path: Any) -> None:
    kept = {"recordings": tmp_path / "recordings"}
    with saying({"answer": True}) as judge:
        [record] = await carry_out(plan_of(polite), replay="record", **kept)
        assert record.value == 1.0
        assert record.judging.requests == 1  # not the subject's
        [again] = await carry_out(plan_of(polite), replay="strict", **kept)
        assert again.value == 1.0
        assert len(judge.asked) == 1


async def test_a_scorer_with_a_loop_of_its_own_is_told_what_to_do(carry_out: CarryOut) -> None:
    with saying({"answer": True}):
        [record] = await carry_out(plan_of(hurried))
    assert record.verdict == "grader"
    assert record.failure is not None
    assert "make the scorer `async def`" in record.failure.message
