"""Test that models of a configuration which cannot be asked are reported before anything runs."""

from pathlib import Path

import pytest

from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.suites import added_providers, check_models
from bakeoff.errors import UsageError

SUITE = """\
modelsToTest: [{models}]
testCases: [{{prompt: a, expectedOutput: null}}]
mcpServers: [{{name: s, command: x}}]
providers:
  mine: {target}
"""
MODULE = """\
class Mine:
    def create_message(self, system, message):
        return "null"

def needs_two(one, two):
    return Mine()
"""


@pytest.fixture
def suite(tmp_path: Path, request: pytest.FixtureRequest):
    module = f"provider_{abs(hash(request.node.nodeid))}"  # modules stay imported
    (tmp_path / f"{module}.py").write_text(MODULE)

    def make(models: str = "mine:x", target: str = "MODULE:Mine", **environment: str):
        file = tmp_path / "suite.yaml"
        file.write_text(SUITE.format(models=models, target=target.replace("MODULE", module)))
        return read_suite(file, environment)

    return make


def told(suite) -> str:
    with pytest.raises(UsageError) as caught:
        check_models(suite)
    return str(caught.value)


def test_a_class_beside_the_configuration_is_found(suite):
    made = suite()
    check_models(made)
    assert added_providers(made)["mine"].wire == "custom"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (
            "no_such_module:Mine",
            "suite.yaml:5: providers.mine: provider 'mine': module 'no_such_module' cannot be imported",
        ),
        ("MODULE:Yours", "has no 'Yours'"),
        ("MODULE:needs_two", "cannot be called with the settings alone"),
        ("json:__doc__", "has no `create_message(system, message)`"),
    ],
)
def test_a_provider_that_cannot_be_used_is_told_with_its_line(suite, target: str, problem: str):
    assert problem in told(suite(target=target))


def test_every_model_that_cannot_be_asked_is_told_at_once_with_its_line(suite):
    lines = told(suite("local:smollm2, opnai:gpt-4o, openai:gpt-4o")).splitlines()
    assert len(lines) == 2
    assert "suite.yaml:1: modelsToTest[1]: model 'opnai:gpt-4o': unknown provider 'opnai'; did you mean" in lines[0]
    assert "modelsToTest[2]: model 'openai:gpt-4o': no key: set OPENAI_API_KEY" in lines[1]


def test_a_key_that_is_set_is_enough(suite):
    check_models(suite("openai:gpt-4o", OPENAI_API_KEY="test-key"))
