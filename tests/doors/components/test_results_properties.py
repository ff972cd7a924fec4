"""Whatever stands in a result file is read, and becomes records."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bakeoff.doors.components.results.read import parse_result, plan_of, records_of
from bakeoff.record import Record

pytestmark = [pytest.mark.full, pytest.mark.unwatched]


def name_of(test: Any) -> str:
    return str(test["testName"])


names = st.text("abcdefgh-_./:äß漢 ", min_size=1, max_size=12).filter(lambda name: bool(name.strip()))
texts = st.text(max_size=30)
counts = st.integers(0, 10**12)
numbers = st.one_of(counts, st.floats(0, 1e12, allow_nan=False))
free = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
ids = st.sampled_from(["a", "b", ""])
tools = st.sampled_from(["ResultWrite", "TestComponent", "other"])
calls = {"toolCallId": ids, "toolName": tools}

blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "text": texts}),
    st.fixed_dictionaries({"type": st.just("tool-call"), **calls}, optional={"input": free}),
    st.fixed_dictionaries(
        {"type": st.just("tool-result"), **calls},
        optional={"input": free, "output": free},
    ),
)
steps = st.fixed_dictionaries(
    {
        "content": st.lists(blocks, max_size=6),
        "finishReason": st.sampled_from(["stop", "tool-calls", "tool_call", "content-filter", "content_filter"])
        | texts,
        "usage": st.none()
        | st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                ("inputTokens", "outputTokens", "totalTokens", "cachedInputTokens", "reasoningTokens"),
                st.none() | counts,
            ),
        ),
    },
    optional={
        "warnings": st.none() | st.lists(free, max_size=2),
        "response": st.none() | st.dictionaries(texts, free, max_size=3),
    },
)
verifications: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "testName": names,
        "passed": st.booleans(),
        "numTests": counts,
        "numPassed": counts,
        "numFailed": counts,
        "duration": numbers,
    },
    optional={
        "error": texts,
        "failedTests": st.lists(st.fixed_dictionaries({"fullName": texts, "errorMessage": texts}), max_size=2),
        "validation": st.fixed_dictionaries({"valid": st.booleans(), "errors": st.lists(texts, max_size=2)}),
        "validationFailed": st.booleans(),
    },
)
verifications = verifications.map(lambda one: {**one, "numTests": one["numTests"] + one["numPassed"]})
"""More tests cannot have passed than there are."""

tests = st.fixed_dictionaries(
    {
        "testName": names,
        "prompt": texts,
        "steps": st.lists(steps, max_size=3),
        "resultWriteContent": st.none() | texts,
        "verification": st.none() | verifications,
    }
)
metadata = st.fixed_dictionaries(
    {
        "mcpEnabled": st.booleans(),
        "timestamp": st.datetimes()
        .filter(lambda moment: moment.year >= 1971)
        .map(lambda moment: f"{moment.isoformat()}Z"),
        "model": names,
    },
    optional={
        "mcpServerUrl": st.none() | texts,
        "mcpTransportType": st.sampled_from(["HTTP", "StdIO", None]),
        "pricingKey": st.none() | texts,
        "pricing": st.fixed_dictionaries(
            {"inputCostPerMTok": numbers, "outputCostPerMTok": numbers},
            optional={"cacheReadCostPerMTok": numbers, "cacheCreationCostPerMTok": numbers},
        ),
        "totalCost": st.fixed_dictionaries(
            {
                **dict.fromkeys(("inputCost", "outputCost", "totalCost"), numbers),
                **dict.fromkeys(("inputTokens", "outputTokens"), counts),
            },
            optional={"cacheReadCost": numbers, "cachedInputTokens": counts},
        ),
        "cacheSimulation": st.fixed_dictionaries(
            {"simulatedCostWithCache": numbers, "cacheHits": counts, "cacheWriteTokens": counts},
            optional={"cacheSavings": numbers, "more": free},
        ),
        "unitTestTotals": st.fixed_dictionaries(
            {"total": counts, "passed": counts, "failed": counts, "score": numbers}
        ),
    },
)
files = st.fixed_dictionaries({"tests": st.lists(tests, max_size=3, unique_by=name_of), "metadata": metadata})
slowly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)


@slowly
@given(files)
def test_every_file_is_understood_and_becomes_records_that_a_journal_can_keep(raw: Any) -> None:
    result = parse_result(json.dumps(raw).encode(), "generated")
    assert json.loads(result.to_json()) == raw
    plan = plan_of(result, "generated")
    records = list(records_of(result, plan))
    assert [record.case for record in records] == [test["testName"] for test in raw["tests"]]
    assert [Record.model_validate_json(record.model_dump_json(exclude_defaults=True)) for record in records] == records


@slowly
@given(tests, st.none() | metadata)
def test_every_file_of_one_test_is_read_in_the_form_of_today(test: Any, about: Any) -> None:
    old = {"steps": test["steps"], "resultWriteContent": test["resultWriteContent"]}
    raw = old if about is None else {**old, "metadata": about}
    read = json.loads(parse_result(json.dumps(raw).encode(), "generated").to_json())
    assert read["tests"] == [{"testName": "legacy", "prompt": "", "verification": None, **old}]
    assert about is None or read["metadata"] == about
