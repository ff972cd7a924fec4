"""Tool calls as people write them, and as journals that are there already have them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from bakeoff.record import Step, ToolCall
from bakeoff.sdk_results.plain_data import TaskResult

MOMENT = 1_700_000_000.0


@pytest.mark.parametrize(
    "moment",
    [
        MOMENT,
        int(MOMENT),
        int(MOMENT) * 1000,
        datetime.fromtimestamp(MOMENT, UTC),
        datetime.fromtimestamp(MOMENT, timezone(timedelta(hours=5))),
        "2023-11-14T22:13:20Z",
        "2023-11-14T23:13:20+01:00",
    ],
    ids=repr,
)
def test_a_timestamp_of_any_kind_is_when_the_call_started(moment: Any) -> None:
    call = ToolCall.model_validate({"name": "add", "timestamp": moment})
    assert (call.started, call.timestamp) == (MOMENT, MOMENT)


def test_a_type_of_ones_own_is_kept_beside_ours() -> None:
    call = ToolCall(name="add", type="function", status="completed", timestamp="2023-11-14T22:13:20Z")
    assert (call.type, call.kind, call.status) == ("tool", "function", "completed")
    assert ToolCall.model_validate_json(call.model_dump_json(exclude_defaults=True)) == call


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("no", "no"),
        (ValueError("no"), "ValueError: no"),
        ({"code": "E1", "message": "no"}, "no"),
        ({"code": "E1"}, "{'code': 'E1'}"),
    ],
    ids=repr,
)
def test_an_error_of_any_kind_is_its_words(error: Any, text: str) -> None:
    assert ToolCall.model_validate({"name": "add", "error": error}).error == text


def test_arguments_and_results_may_be_any_object() -> None:
    call = ToolCall.model_validate({"name": "add", "arguments": {"when": datetime(2024, 1, 2)}, "result": {1}})
    assert (call.arguments, call.result) == ({"when": "2024-01-02T00:00:00"}, [1])


def test_fields_at_their_defaults_are_not_written() -> None:
    assert ToolCall(name="add").model_dump_json(exclude_defaults=True) == '{"type":"tool","name":"add"}'


def test_a_step_written_before_there_were_new_fields_is_read() -> None:
    old = '{"type":"tool","name":"add","arguments":{"a":1},"result":2,"id":"1","started":1.5,"duration_ms":3.0}'
    [part] = Step.model_validate_json(f'{{"parts":[{old}]}}').parts
    expected = ToolCall(name="add", arguments={"a": 1}, result=2, id="1", started=1.5, duration_ms=3.0)
    assert part == expected


@pytest.mark.parametrize(
    ("given", "word"),
    [({"naem": "add"}, "naem"), ({"name": "add", "timestamp": "soon"}, "started"), ({"name": 3}, "name")],
)
def test_a_mistake_is_named(given: dict[str, Any], word: str) -> None:
    with pytest.raises(ValidationError, match=word):
        ToolCall.model_validate(given)


def test_a_task_result_takes_calls_as_dicts_and_the_spelling_of_javascript() -> None:
    call = {"name": "add", "arguments": {"a": 2}, "parentId": "0", "durationMs": 3}
    made = TaskResult.model_validate({"result": "4", "toolCalls": [call]})
    assert made.tool_calls == (ToolCall(name="add", arguments={"a": 2}, parent_id="0", duration_ms=3),)
    assert made.transcript().tool_calls == made.tool_calls


def test_a_task_result_takes_none_for_what_there_is_not() -> None:
    made = TaskResult.model_validate({"result": "4", "tool_calls": None, "usage": None, "metadata": None})
    assert made == TaskResult(result="4")
