"""The embedded model under test: no key, no network, and the same answer to the same question."""

import json
from typing import Any

import pytest

from ....warm_bakeoff import Bakeoff
from ..conftest import BMI, Evaluate, desk, details

pytestmark = pytest.mark.full

pytest.importorskip("xllamacpp", reason="llama.cpp is not here: pip install 'bakeoff[local]'")

CASES = [
    {"prompt": "Calculate my BMI: weight 90 kg, height 1.8 m", "expectedOutput": BMI},
    {"prompt": "Hello there", "expectedOutput": None},
]


def test_two_commands_in_an_empty_folder_evaluate_a_running_example(
    bakeoff: Bakeoff, use_cache: None, nobody: None
) -> None:
    made = bakeoff("mcp", "init", ".", "--example", "getting-started")
    assert made.returncode == 0, made.stderr
    done = bakeoff("mcp", "evaluate", "--case", "timer", "--case", "poem", "--rounds", "1", "--json", "--no-open")
    assert done.returncode == 1, done.stderr
    results = json.loads(done.stdout)["results"]
    assert [case["modelResults"][0]["passRate"] for case in results] == [1.0, 0.0]
    [failed] = results[1]["modelResults"][0]["details"]
    assert failed["error"].startswith("no tool should be called, but 'kitchen / "), "it fails by the model's own doing"


@pytest.fixture
def answers(use_cache: None, evaluated: Evaluate) -> Any:
    def ask(**fields: Any) -> Any:
        return evaluated(modelsToTest=["local:smollm2"], mcpServers=[desk("health")], concurrencyLimit=1, **fields)

    return ask


# Other test processes use the same server: what it computes together with their requests is rounded differently.
@pytest.mark.flaky(reruns=2)
def test_a_small_model_chooses_tools_and_says_the_same_twice(answers: Any) -> None:
    settings = {"maxTokens": 60, "timeout": 300}  # on a busy machine it takes its time
    first, second = (answers(testCases=CASES, modelSettings=settings) for _ in range(2))
    assert first.results[0].modelResults[0].passRate == 1.0, details(first)[0].response
    assert first.results[1].modelResults[0].passRate == 0.0, "it calls a tool for a greeting"
    assert first.results == second.results
    assert first.bakeoff.models[0].constrainedReplies
    assert sum(first.bakeoff.models[0].replies.values()) == 2


def test_rounds_differ_where_the_temperature_lets_them(answers: Any) -> None:
    report = answers(
        testCases=CASES[1:], testRound=3, modelSettings={"temperature": 0.7, "maxTokens": 60, "timeout": 300}
    )
    assert len({str(detail.response) for detail in details(report)}) > 1
