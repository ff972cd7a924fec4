"""Check result files against a schema of what the TypeScript benchmark's page generator reads, apart from our models.

That generator is in no registry, so the schema stands for it: every field, its type, and no other field but `bakeoff`.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from .test_results_write import lost, plan_with, record, suite_score, verification, written


def an(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with exactly these fields."""
    fields = {**required, **(optional or {})}
    return {"type": "object", "properties": fields, "required": [*required], "additionalProperties": False}


def a_list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXT, FLAG, NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "number"}
ANY: dict[str, Any] = {}
COUNT = {"type": "integer", "minimum": 0}
TEXT_OR_NULL = {"type": ["string", "null"]}
VERIFICATION = an(
    {
        "testName": TEXT,
        "passed": FLAG,
        "numTests": COUNT,
        "numPassed": COUNT,
        "numFailed": COUNT,
        "duration": COUNT,
        "failedTests": a_list(an({"fullName": TEXT, "errorMessage": TEXT})),
    },
    {"error": TEXT, "validation": an({"valid": FLAG, "errors": a_list(TEXT)}), "validationFailed": FLAG},
)
CALLED = {"toolCallId": TEXT, "toolName": TEXT, "input": {"type": "object"}}
BLOCK = {
    "oneOf": [
        an({"type": {"const": "text"}, "text": TEXT}),
        an({"type": {"const": "reasoning"}, "text": TEXT}),
        an({"type": {"const": "tool-call"}, **CALLED}),
        an({"type": {"const": "tool-result"}, **CALLED, "output": ANY}),
    ]
}
USAGE = an(
    {"inputTokens": COUNT, "outputTokens": COUNT, "totalTokens": COUNT},
    {"cachedInputTokens": COUNT, "reasoningTokens": COUNT},
)
STEP = an(
    {"content": a_list(BLOCK), "finishReason": TEXT, "usage": USAGE, "warnings": a_list(ANY), "response": ANY},
)
TEST = an(
    {
        "testName": TEXT,
        "prompt": TEXT,
        "steps": a_list(STEP),
        "resultWriteContent": TEXT_OR_NULL,
        "verification": {"oneOf": [VERIFICATION, {"type": "null"}]},
    }
)
METADATA = an(
    {
        "mcpEnabled": FLAG,
        "mcpServerUrl": TEXT_OR_NULL,
        "mcpTransportType": {"enum": ["HTTP", "StdIO", None]},
        "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"},
        "model": TEXT,
        "unitTestTotals": an({"total": COUNT, "passed": COUNT, "failed": COUNT, "score": COUNT}),
    },
    {
        "pricingKey": TEXT,
        "pricing": an(
            {"inputCostPerMTok": NUMBER, "outputCostPerMTok": NUMBER},
            {"cacheReadCostPerMTok": NUMBER, "cacheCreationCostPerMTok": NUMBER},
        ),
        "totalCost": an(
            {
                **dict.fromkeys(("inputCost", "outputCost", "cacheReadCost", "totalCost"), NUMBER),
                **dict.fromkeys(("inputTokens", "outputTokens", "cachedInputTokens"), COUNT),
            }
        ),
        "cacheSimulation": an(
            {
                **dict.fromkeys(("simulatedCostWithCache", "simulatedInputCost", "simulatedOutputCost"), NUMBER),
                **dict.fromkeys(("cacheHits", "cacheWriteTokens", "outputTokens"), COUNT),
            }
        ),
    },
)
READS = Draft202012Validator(an({"tests": a_list(TEST), "metadata": METADATA}, {"bakeoff": {"type": "object"}}))


def a_file(**settings: Any) -> Any:
    """A file with a suite that passed, one with failures and a validator's objection, and one that was lost."""
    plan = plan_with(settings=settings)
    failures = [{"fullName": "timer > ends", "errorMessage": "it did not"}]
    more: dict[str, Any] = {
        "failedTests": failures,
        "validation": {"valid": False, "errors": ["no"]},
        "validationFailed": True,
    }
    failed = record(plan, "timer", scores=(suite_score(verification("timer", 3, **more)),))
    passed = record(plan, "counter", scores=(suite_score(verification("counter", failedTests=[])),))
    return written(plan, passed, failed, lost(plan, "form", "infra"))


@pytest.mark.parametrize("settings", [{}, {"pricing": False}])
def test_files_of_ours_have_every_field_that_the_generator_reads_and_no_other(settings: dict[str, Any]) -> None:
    problems = [f"{error.json_path}: {error.message}" for error in READS.iter_errors(a_file(**settings))]
    assert not problems


def without(*path: str | int) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


def changed(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        without("tests", 0, "verification", "failedTests"),
        changed("tests", 0, "verification", "duration", to=150.5),
        changed("tests", 0, "verification", "stars", to=5),
        changed("tests", 0, "steps", 0, "content", 0, "type", to="thought"),
        without("metadata", "cacheSimulation", "simulatedInputCost"),
        without("metadata", "cacheSimulation", "outputTokens"),
        changed("metadata", "timestamp", to="2024-12-07"),
        changed("metadata", "run", to="ours"),
        changed("more", to=True),
    ],
)
def test_the_schema_refuses_what_the_generator_would_not_show(change: Callable[[Any], None]) -> None:
    data = copy.deepcopy(a_file())
    change(data)
    assert not READS.is_valid(json.loads(json.dumps(data)))
