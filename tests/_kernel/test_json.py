"""Any object becomes JSON data that every file can hold."""

from typing import Any

import pytest

from bakeoff._kernel.json import as_json, clean, clean_text
from bakeoff.plan import Case
from bakeoff.record import Failure, Score, Step, Text, ToolCall, Transcript

HALF = "\ud83d"
ESCAPED = r"\ud83d"


@pytest.mark.parametrize("text", ["", "plain", "größer 🚀", "\0"])
def test_a_text_that_can_be_written_stays_the_same_object(text: str) -> None:
    assert clean_text(text) is text


def test_lone_surrogates_become_escapes_at_every_depth() -> None:
    assert clean({HALF: [HALF, (HALF, 1)]}) == {ESCAPED: [ESCAPED, (ESCAPED, 1)]}


@pytest.mark.parametrize("value", [HALF, {HALF: HALF}, [{"a": HALF}], {"a": object(), "b": HALF}])
def test_any_object_becomes_json_that_can_be_written(value: Any) -> None:
    Transcript(output=as_json(value)).model_dump_json()


def test_plans_transcripts_and_records_hold_only_texts_that_can_be_written() -> None:
    call = ToolCall(name=HALF, arguments={HALF: HALF}, result=[HALF], error=HALF, id=HALF)
    parts = (Text(text=HALF), call)
    made = (
        Case(id="c", prompt=HALF, expected={HALF: HALF}, files={"a": HALF}, tags={HALF: HALF}),
        Transcript(output={HALF: HALF}, steps=(Step(parts=parts),), metadata={HALF: HALF}),
        Score(name=HALF, reason=HALF, failure=Failure(kind="infra", type=HALF, message=HALF, detail=HALF)),
    )
    for model in made:
        written = model.model_dump_json()
        assert type(model).model_validate_json(written) == model
        assert written.count(r"\\ud83d") >= 4
