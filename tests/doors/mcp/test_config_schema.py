"""The published JSON Schema accepts and refuses the same configurations."""

from pathlib import Path
from textwrap import dedent

import pytest
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]
from scripts.mcp_schema import config_schema, schema_text

from bakeoff._kernel.yaml import read_yaml
from bakeoff.doors.mcp.examples import published_schema

from .config_texts import CALL, GOOD, SEED, TABLE, WITH_TURNS, changed


def test_the_published_schema_is_current():
    assert published_schema() == schema_text(), "run scripts/mcp_schema.py"
    Draft202012Validator.check_schema(config_schema())


ACCEPTED = {
    "good": GOOD,
    "oauth": GOOD + "  - {name: web, url: 'https://host/mcp', oauth: {tokenFile: token}}\n",
    "seed": SEED,
    "sequence": changed(
        CALL, "    expectedToolUsage:\n    - {serverName: a, toolName: b}\n    - {serverName: a, toolName: c}\n"
    ),
    "turns": WITH_TURNS,
    "end state": changed(
        CALL, CALL + "    endState: [{command: [ls, -l]}, {command: ls, expectedResults: a, name: x}]\n"
    ),
    "no call": changed(CALL, "    expectedOutput: null\n"),
    "everything": GOOD
    + "    cwd: /tmp\n"
    + dedent("""\
        passThreshold: 0.5
        suiteRule: ratio
        executeTools: true
        mode: agent
        gradingPrompt: Is it right?
        judge: local:smollm2
        allowSelfGrading: true
        extraParameters: allow
        strictJson: true
        retryConfig: {maxRetries: 0, baseDelay: 1, maxDelay: 2.5}
        modelSettings: {temperature: 0.7, seed: 3, local:smollm2: {timeout: 5}}
        serverScope: trial
        providers:
          mine: my_module:Mine
          there: https://host/v1
          other: {baseUrl: 'http://127.0.0.1:1/v1', apiKeyVariable: OTHER_KEY}
          last: {class: 'a.b:C', options: {x: 1}}
        """),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_is_accepted_here_is_accepted_by_the_schema(read, tmp_path: Path, what: str):
    read(ACCEPTED[what])
    errors = Draft202012Validator(config_schema()).iter_errors(read_yaml(tmp_path / "suite.yaml").value)
    assert [error.message for error in errors] == []


@pytest.mark.parametrize(
    "what",
    [
        "unknown key",
        "misspelt matcher",
        "no models",
        "empty models",
        "unknown mode",
        "both spellings",
        "server with two ways",
        "no time",
        "no turns",
        "prompt beside turns",
        "turn without a prompt",
        "turn without calls",
        "unknown key of a turn",
        "both spellings in a turn",
    ],
)
def test_an_editor_with_the_schema_sees_the_same_mistakes(tmp_path: Path, what: str):
    text, _ = TABLE[what]
    assert isinstance(text, str)
    (tmp_path / "suite.yaml").write_text(text)
    value = read_yaml(tmp_path / "suite.yaml").value
    assert list(Draft202012Validator(config_schema()).iter_errors(value))
