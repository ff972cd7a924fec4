"""Configurations: what they mean, and everything that can be wrong with one, told with file, line and key."""

import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]

from bakeoff._kernel.yaml_with_lines import read_yaml
from bakeoff.doors.mcp_suite.api import evaluate
from bakeoff.doors.mcp_suite.config import Suite, read_suite, unknown_tools
from bakeoff.doors.mcp_suite.examples import config_schema, published_schema, schema_text
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool

GOOD = """\
testRound: 2
modelsToTest:
  - local:smollm2
testCases:
  - prompt: What is the weather in Oslo?
    expectedOutput:
      serverName: weather
      toolName: forecast
      parameters: {city: Oslo}
mcpServers:
  - name: weather
    command: weather-server
"""
SEED = """\
testRound: 10 # Number of test iterations per model
passThreshold: 0.8 # Minimum pass rate (0-1)
concurrencyLimit: 5 # Max concurrent test executions

modelsToTest:
  - local:smollm2
  - custom:my-model # Custom provider example

testCases:
  - prompt: 'Help me calculate my BMI index, my weight is 90kg, my height is 180cm'
    expectedOutput:
      serverName: 'example-server'
      toolName: 'calculate-bmi'
      parameters:
        weightKg: 90
        heightM: 1.8
  - prompt: 'Search for healthcare providers in California'
    expectedOutput:
      serverName: 'healthcare-server'
      toolName: 'search-providers'
      parameters:
        # Case insensitive comparison for state parameter
        state:
          value: 'california'
          caseInsensitive: true
        # Optional parameter with case insensitive comparison
        specialty:
          value: 'cardiology'
          optional: true
          caseInsensitive: true

mcpServers:
  - name: 'local-server'
    command: 'npx' # stdio transport
    args: ['-y', 'mcp-server']
    env:
      KEY: 'value'
  - name: 'remote-server'
    url: 'http://127.0.0.1:3001/sse' # SSE transport
"""


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str | bytes, **environment: str) -> Suite:
        file = tmp_path / "suite.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_suite(file, environment)

    return read


def changed(old: str, new: str, text: str = GOOD) -> str:
    assert old in text
    return text.replace(old, new, 1)


CASE, SERVER, MODEL = "  - prompt: What", "  - name: weather\n    command: weather-server\n", "  - local:smollm2\n"
PARAMETERS = "parameters: {city: Oslo}"
DEEP = """\
parameters:
        places:
          - city:
              value: {name: {regex: '['}}
              optional: true"""
CALL = "    expectedOutput:\n      serverName: weather\n      toolName: forecast\n      parameters: {city: Oslo}\n"

# What is wrong, and what is told: after `suite.yaml:`, the line, the key, the value and what would be right.
TABLE: dict[str, tuple[str | bytes, str]] = {
    "empty file": ("", "1: this is not a configuration: it needs modelsToTest, testCases and mcpServers"),
    "only a comment": ("# later\n", "1: this is not a configuration"),
    "list at the top": ("- a\n- b\n", "1: this is not a configuration"),
    "text at the top": ("hello", "1: this is not a configuration"),
    "no models": (changed("modelsToTest:\n" + MODEL, ""), "1: modelsToTest: is missing: list models, such as"),
    "no cases": ("modelsToTest: [a:b]\nmcpServers: [{name: a, command: b}]", "1: testCases: is missing: list cases"),
    "no servers": (
        changed("mcpServers:\n" + SERVER, ""),
        "1: mcpServers: is missing: list servers, each with a `name`",
    ),
    "empty models": (changed("modelsToTest:\n" + MODEL, "modelsToTest: []\n"), "2: modelsToTest: []: needs at least 1"),
    "empty servers": (changed("mcpServers:\n" + SERVER, "mcpServers: []\n"), "10: mcpServers: []: needs at least 1"),
    "null models": (changed("modelsToTest:\n" + MODEL, "modelsToTest:\n"), "2: modelsToTest: null: has to be a list"),
    "models as a text": (
        changed("modelsToTest:\n" + MODEL, "modelsToTest: local:smollm2\n"),
        "2: modelsToTest: 'local:smollm2': has to be a list: list models, such as `- local:smollm2`",
    ),
    "servers as an object": (
        changed("mcpServers:\n" + SERVER, "mcpServers:\n  weather:\n    command: x\n"),
        "10: mcpServers: an object: must be a list: write `- name: weather`",
    ),
    "unknown key": (
        changed("testRound", "testRounds"),
        "1: testRounds: is not a key that is known here: did you mean 'testRound'?",
    ),
    "key in another case": (
        changed("testRound", "test_round"),
        "1: test_round: is not a key that is known here: did you mean 'testRound'?",
    ),
    "unknown key of a case": (
        changed("expectedOutput", "expectedOutputs"),
        "6: testCases[0].expectedOutputs: is not a key that is known here: did you mean 'expectedOutput'?",
    ),
    "the other spelling, misspelt": (
        changed("expectedOutput", "expectedToolUse"),
        "6: testCases[0].expectedToolUse: is not a key that is known here: did you mean 'expectedToolUsage'?",
    ),
    "both spellings": (
        changed(CALL, CALL + "    expectedToolUsage: null\n"),
        "10: testCases[0].expectedToolUsage: 'expectedToolUsage' is another name for 'expectedOutput'",
    ),
    "unknown key of a call": (
        changed("toolName", "tool"),
        "8: testCases[0].expectedOutput.tool: is not a key that is known here: did you mean 'toolName'?",
    ),
    "unknown key of a server": (
        changed("command:", "comand:"),
        "12: mcpServers[0].comand: is not a key that is known here: did you mean 'command'?",
    ),
    "unknown key of settings": (
        GOOD + "modelSettings: {temprature: 1}\n",
        "13: modelSettings.temprature: is not a key that is known here: did you mean 'temperature'?",
    ),
    "unknown key of retries": (
        GOOD + "retryConfig: {retries: 1}\n",
        "13: retryConfig.retries: is not a key that is known here: did you mean 'maxRetries'?",
    ),
    "our inner name": (
        GOOD + "modelSettingsOf: {}\n",
        "13: modelSettingsOf: is not a key that is known here: did you mean 'modelSettings'?",
    ),
    "rounds of none": (changed("testRound: 2", "testRound: 0"), "1: testRound: 0: has to be at least 1"),
    "half a round": (changed("testRound: 2", "testRound: 1.5"), "1: testRound: 1.5: has to be a whole number"),
    "rounds as a text": (changed("testRound: 2", "testRound: '2'"), "1: testRound: '2': has to be a whole number"),
    "rounds as a truth": (changed("testRound: 2", "testRound: true"), "1: testRound: true: has to be a whole number"),
    "threshold in percent": (GOOD + "passThreshold: 80\n", "13: passThreshold: 80: has to be at most 1"),
    "threshold below zero": (GOOD + "passThreshold: -0.1\n", "13: passThreshold: -0.1: has to be at least 0"),
    "threshold as a text": (GOOD + "passThreshold: 80%\n", "13: passThreshold: '80%': has to be a number"),
    "threshold without end": (GOOD + "passThreshold: .inf\n", "13: passThreshold: '.inf': has to be a number"),
    "no concurrency": (GOOD + "concurrencyLimit: 0\n", "13: concurrencyLimit: 0: has to be at least 1"),
    "unknown mode": (
        GOOD + "mode: nativ\n",
        "13: mode: 'nativ': has to be 'json', 'native' or 'agent': did you mean 'native'?",
    ),
    "unknown rule": (GOOD + "suiteRule: most\n", "13: suiteRule: 'most': has to be 'all' or 'ratio'"),
    "unknown scope": (GOOD + "serverScope: case\n", "13: serverScope: 'case': has to be 'run' or 'trial'"),
    "extra parameters": (
        GOOD + "extraParameters: ignore\n",
        "13: extraParameters: 'ignore': has to be 'reject' or 'allow'",
    ),
    "truth as a text": (GOOD + "executeTools: yes\n", "13: executeTools: 'yes': has to be true or false"),
    "model without provider": (
        changed("local:smollm2", "smollm2"),
        "3: modelsToTest[0]: 'smollm2' is not a model name: write `provider:model`",
    ),
    "model without name": (changed("local:smollm2", "'local:'"), "3: modelsToTest[0]: 'local:' is not a model name"),
    "model as a number": (changed("local:smollm2", "4"), "3: modelsToTest[0]: 4: has to be a text: put it in quotes"),
    "model twice": (changed(MODEL, MODEL + MODEL), "4: modelsToTest[1]: 'local:smollm2' is listed twice: remove one"),
    "case that is a text": (
        changed(CASE, "  - just this\n" + CASE),
        "5: testCases[0]: 'just this': has to be an object, with keys and values",
    ),
    "case without prompt": (
        changed("prompt: What is the weather in Oslo?", "name: a"),
        "5: testCases[0].prompt: is missing: write what a person would ask",
    ),
    "empty prompt": (changed("What is the weather in Oslo?", "''"), "5: testCases[0].prompt: '': must not be empty"),
    "blank prompt": (
        changed("What is the weather in Oslo?", "'  '"),
        "5: testCases[0].prompt: '  ' is empty: write what a person would ask",
    ),
    "case without expectation": (
        changed(CALL, ""),
        "5: testCases[0].expectedOutput: is missing: write {serverName, toolName, parameters}",
    ),
    "expectation as a text": (
        changed(CALL, "    expectedOutput: forecast\n"),
        "6: testCases[0].expectedOutput: 'forecast': has to be a list: write {serverName,",
    ),
    "empty expectation": (
        changed(CALL, "    expectedOutput: []\n"),
        "6: testCases[0].expectedOutput: [] is empty: write null",
    ),
    "expected text in a list": (
        changed(CALL, "    expectedOutput:\n    - forecast\n"),
        "7: testCases[0].expectedOutput[0]: 'forecast': has to be an object",
    ),
    "call without server": (
        changed("      serverName: weather\n", ""),
        "6: testCases[0].expectedOutput.serverName: is missing: write the `name` of one of mcpServers",
    ),
    "call without tool": (
        changed("      toolName: forecast\n", ""),
        "6: testCases[0].expectedOutput.toolName: is missing: write the tool's name",
    ),
    "parameters as a list": (
        changed(PARAMETERS, "parameters: [Oslo]"),
        "9: testCases[0].expectedOutput.parameters: ['Oslo']: has to be an object, with keys and values",
    ),
    "case names twice": (
        changed(
            CASE,
            "  - {name: a, prompt: b, expectedOutput: null}\n" * 2 + CASE,
        ),
        "6: testCases[1].name: 'a' is used twice, first by testCases[0]: rename one",
    ),
    "tags as a text": (
        changed(CASE, f"  - tags: smoke\n{CASE.replace('-', ' ')}"),
        "5: testCases[0].tags: 'smoke': has to be a list: write a list such as [smoke]",
    ),
    "bad regex": (
        changed(PARAMETERS, "parameters: {city: {regex: '('}}"),
        "9: testCases[0].expectedOutput.parameters.city.regex: '(' is not a regular expression",
    ),
    "bad matcher deep inside": (
        changed(PARAMETERS, DEEP),
        "12: testCases[0].expectedOutput.parameters.places[0].city.value.name.regex: '[' is not a regular expression",
    ),
    "bad matcher of a parameter with a dot": (
        changed(PARAMETERS, "parameters:\n        a: 1\n        a.b: {regex: '('}"),
        "11: testCases[0].expectedOutput.parameters.a.b.regex: '(' is not a regular expression",
    ),
    "bad matcher of a parameter that is a number": (
        changed(PARAMETERS, "parameters:\n        '0': {regex: '('}"),
        "10: testCases[0].expectedOutput.parameters.0.regex: '(' is not a regular expression",
    ),
    "matcher of nothing": (
        changed(PARAMETERS, "parameters: {city: {caseInsensitive: true}}"),
        "9: testCases[0].expectedOutput.parameters.city: this says how to compare but not with what: add `value`; "
        "to expect this object literally, write {value: {…}, exact: true}",
    ),
    "approximate text": (
        changed(PARAMETERS, "parameters: {city: {value: Oslo, approx: 1}}"),
        "9: testCases[0].expectedOutput.parameters.city: `approx` needs a number as `value`, not 'Oslo'",
    ),
    "approximate to less than nothing": (
        changed(PARAMETERS, "parameters: {t: {value: 1, approx: -1}}"),
        "9: testCases[0].expectedOutput.parameters.t.approx: -1: has to be at least 0",
    ),
    "none of": (
        changed(PARAMETERS, "parameters: {city: {oneOf: []}}"),
        "9: testCases[0].expectedOutput.parameters.city.oneOf: []: needs at least 1",
    ),
    "two ways to match": (
        changed(PARAMETERS, "parameters: {city: {oneOf: [a], regex: b}}"),
        "9: testCases[0].expectedOutput.parameters.city: `oneOf` and `regex` exclude each other",
    ),
    "value beside any": (
        changed(PARAMETERS, "parameters: {city: {value: a, any: true}}"),
        "9: testCases[0].expectedOutput.parameters.city: `value` has no meaning beside `any`: remove one",
    ),
    "optional as a text": (
        changed(PARAMETERS, "parameters: {city: {value: a, optional: 'true'}}"),
        "9: testCases[0].expectedOutput.parameters.city.optional: 'true': has to be true or false",
    ),
    "bad matcher of results": (
        changed(CALL, CALL + "    expectedResults: {regex: '('}\n"),
        "10: testCases[0].expectedResults.regex: '(' is not a regular expression",
    ),
    "results of no call": (
        changed(CALL, "    expectedOutput: null\n    expectedResults: {a: 1}\n"),
        "7: testCases[0].expectedResults: has no meaning if no tool should be called",
    ),
    "grading without judge": (
        GOOD + "gradingPrompt: Is it right?\n",
        "13: gradingPrompt: needs a `judge: provider:model` to grade with",
    ),
    "one case's grading without judge": (
        changed(CALL, CALL + "    gradingPrompt: Is it?\n"),
        "10: testCases[0].gradingPrompt: needs a `judge",
    ),
    "judge without provider": (GOOD + "judge: clever\n", "13: judge: 'clever' is not a model name"),
    "judge under test": (
        GOOD + "judge: local:smollm2\n",
        "13: judge: 'local:smollm2' is under test: name another model, or write `allowSelfGrading: true`",
    ),
    "judge under test in other letters": (
        GOOD + "judge: 'Local: smollm2'\n",
        "13: judge: 'Local: smollm2' is under test: name another model, or write `allowSelfGrading: true`",
    ),
    "server without name": (changed("name: weather\n    command", "command"), "11: mcpServers[0].name: is missing"),
    "server twice": (
        GOOD + SERVER,
        "13: mcpServers[1].name: 'weather' is used twice, first by mcpServers[0]: rename one",
    ),
    "server without a way": (
        changed("    command: weather-server\n", ""),
        "11: mcpServers[0]: server 'weather' has neither `command` nor `url`: give one of them",
    ),
    "server with two ways": (
        GOOD + "    url: http://127.0.0.1/mcp\n",
        "11: mcpServers[0]: server 'weather' has both `command` and `url`: give one of them",
    ),
    "server with a bad url": (
        changed("command: weather-server", "url: localhost:3001"),
        "12: mcpServers[0].url: 'localhost:3001' is not the address of a server: write it as https://host/path",
    ),
    "server with an unknown transport": (
        GOOD + "    transport: websocket\n",
        "13: mcpServers[0].transport: 'websocket': has to be 'stdio', 'sse' or 'http'",
    ),
    "transport that needs a url": (
        GOOD + "    transport: sse\n",
        "11: mcpServers[0]: server 'weather': transport 'sse' needs `url`",
    ),
    "headers of a program": (
        GOOD + "    headers: {A: b}\n",
        "11: mcpServers[0]: server 'weather': `headers` has no meaning for transport 'stdio'",
    ),
    "empty command": (
        changed("command: weather-server", "command: ' '"),
        "11: mcpServers[0]: server 'weather': `command` is empty",
    ),
    "command with its arguments": (
        changed("command: weather-server", "command: npx -y weather"),
        "12: mcpServers[0].command: 'npx -y weather' is not one program: write `command: npx` and `args: ['-y', ",
    ),
    "arguments as a text": (
        GOOD + "    args: -y weather\n",
        "13: mcpServers[0].args: '-y weather': has to be a list: write each word by itself",
    ),
    "variable as a number": (
        GOOD + "    env: {PORT: 3001}\n",
        "13: mcpServers[0].env.PORT: has to be a text: put it in quotes",
    ),
    "variable that is not set": (
        GOOD + "    env: {TOKEN: '${MY_TOKEN}'}\n",
        "13: mcpServers[0].env.TOKEN: ${MY_TOKEN} is not set: set MY_TOKEN in the environment, in .env",
    ),
    "variable that is none": (
        changed("weather-server", "${my-dir}/server"),
        "12: mcpServers[0].command: '${my-dir}' is not a variable: write it as ${NAME}",
    ),
    "provider of nothing": (
        GOOD + "providers:\n  mine: {}\n",
        "14: providers.mine: a provider needs `target: module:Class`, or a `baseUrl`",
    ),
    "provider of no class": (
        GOOD + "providers:\n  mine: my-module\n",
        "14: providers.mine: 'my-module' does not name a class: write it as `module:Class`",
    ),
    "provider at no address": (
        GOOD + "providers:\n  mine: {baseUrl: 'ftp://x'}\n",
        "14: providers.mine.baseUrl: 'ftp://x' is not an address: write it as https://host/v1",
    ),
    "provider of two kinds": (
        GOOD + "providers:\n  mine: {baseUrl: 'http://x', target: 'a:B'}\n",
        "14: providers.mine: 'mine' has both `target` and `baseUrl`: keep one",
    ),
    "provider with its key": (
        GOOD + "providers:\n  mine: {baseUrl: 'http://x', apiKeyVariable: 'sk-123'}\n",
        "14: providers.mine.apiKeyVariable: this is not the name of a variable",
    ),
    "provider with a colon": (
        GOOD + "providers:\n  'a:b': 'http://x'\n",
        "14: providers.a:b: 'a:b' cannot be the name of a provider: leave out colons and slashes",
    ),
    "temperature below zero": (
        GOOD + "modelSettings: {temperature: -1}\n",
        "13: modelSettings.temperature: -1: has to be at least 0",
    ),
    "no time": (GOOD + "modelSettings: {timeout: 0}\n", "13: modelSettings.timeout: 0: has to be more than 0"),
    "settings of one model": (
        GOOD + "modelSettings:\n  local:smollm2: {maxTokens: 0}\n",
        "14: modelSettings.local:smollm2.maxTokens: 0: has to be at least 1",
    ),
    "settings of an absent model": (
        GOOD + "modelSettings:\n  local:smollm: {maxTokens: 9}\n",
        "14: modelSettings.local:smollm: 'local:smollm' is not among modelsToTest: did you mean 'local:smollm2'?",
    ),
    "delays the wrong way round": (
        GOOD + "retryConfig: {baseDelay: 9, maxDelay: 1}\n",
        "13: retryConfig: maxDelay 1 is less than baseDelay 9: raise it",
    ),
    "retries below zero": (
        GOOD + "retryConfig: {maxRetries: -1}\n",
        "13: retryConfig.maxRetries: -1: has to be at least 0",
    ),
    "key twice": (GOOD + "testRound: 3\n", "13: testRound: is here twice, first on line 1: remove one"),
    "tab": (
        changed("  - local", "\t- local"),
        "3: this is not YAML: found character '\\t' that cannot start any token: a tab stands here, indent with spaces",
    ),
    "colon in a text": (
        changed("What is the weather in Oslo?", "Tell me: what now?"),
        "5: this is not YAML: mapping values are not allowed here: put a text that has `: ` in it in quotes",
    ),
    "list that is not closed": (GOOD + "providers: {a: [1\n", "14: this is not YAML"),
    "quotes that are not closed": (
        GOOD + "judge: 'a\n",
        "14: this is not YAML: found unexpected end of stream: close the quotes",
    ),
    "two documents": (GOOD + "---\na: 1\n", "13: this is not YAML: but found another document: keep one"),
    "anchors that explode": (
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
        "this has more than 200,000 values, aliases counted",
    ),
    "tag": (changed("testRound: 2", "testRound: !!python/name:os.system 2"), "1: testRound: the tag"),
    "merge": (GOOD + "retryConfig:\n  <<: {maxRetries: 1}\n", "14: retryConfig: `<<` merges are not supported"),
    "bytes that are no text": (GOOD.encode().replace(b"Oslo", b"\xe9slo", 1), "suite.yaml is not UTF-8 text"),
    "deeply nested": (
        changed(PARAMETERS, f"parameters: {{a: {'[' * 120}{']' * 120}}}"),
        "nested more than 100 levels deep",
    ),
}


@pytest.mark.parametrize("what", TABLE)
def test_a_configuration_that_is_wrong_is_told_with_file_line_key_and_what_would_be_right(read, what: str):
    text, told = TABLE[what]
    with pytest.raises(UsageError) as caught:
        read(text)
    assert told in str(caught.value)
    assert re.search(r"suite\.yaml(:\d+: | )", str(caught.value))
    # Whatever it was, nobody has to know what our checks are made with.
    assert not re.search(r"Input should|Tuple should|valid (string|integer|boolean)|pydantic", str(caught.value))


def test_all_that_is_wrong_is_told_at_once(read):
    text = changed("testRound: 2", "testRound: 0", changed("command:", "comand:")) + "mode: x\n"
    with pytest.raises(UsageError) as caught:
        read(text)
    keys = [re.sub(r".*suite\.yaml:\d+: ", "", line).split(": ")[0] for line in str(caught.value).splitlines()]
    assert keys == ["testRound", "mcpServers[0].comand", "mode"]


def test_a_list_of_one_that_is_wrong_is_not_also_told_to_be_empty(read):
    with pytest.raises(UsageError) as caught:
        read(GOOD + "    args: [1]\n")
    [problem] = str(caught.value).splitlines()
    assert problem.endswith("suite.yaml:13: mcpServers[0].args[0]: 1: has to be a text: put it in quotes")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("testRound: 2", "testRound: 0", "testRound: 0: has to be at least 1"),
        ("city: Oslo", "city: {regex: '('}", "is not a regular expression"),
        ("local:smollm2", "locl:smollm2", "modelsToTest[0]: model 'locl:smollm2': unknown provider 'locl'"),
        ("local:smollm2", "openai:gpt-4o", "suite.yaml:3: modelsToTest[0]: model 'openai:gpt-4o': no key"),
    ],
)
def test_nothing_is_started_while_something_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, told: str
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = f'command: {sys.executable}\n    args: [-c, \'open("started", "w")\']'
    Path("suite.yaml").write_text(changed(old, new, changed("command: weather-server", server)))
    with pytest.raises(UsageError) as caught:
        evaluate("suite.yaml")
    assert told in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["suite.yaml"]


def test_values_that_may_be_secret_are_not_repeated(read):
    text = changed("command: weather-server", "url: http://127.0.0.1/mcp\n    headers: {Authorization: 12345678}")
    with pytest.raises(UsageError, match="Authorization") as caught:
        read(text)
    assert "12345678" not in str(caught.value)
    with pytest.raises(UsageError, match="has both") as caught:
        read(GOOD + "    url: http://127.0.0.1\n    headers: {Authorization: hush-hush}\n")
    assert "hush" not in str(caught.value)


def test_a_file_of_many_megabytes_is_not_read(tmp_path: Path):
    file = tmp_path / "suite.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(17 * 1024 * 1024)
    with pytest.raises(UsageError, match="larger than 16 MB"):
        read_suite(file, {})


def test_a_file_with_a_byte_order_mark_and_windows_line_ends_is_read(read):
    assert read(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()).config == read(GOOD).config


def test_the_configuration_of_the_other_tool_means_what_it_says(read):
    config = read(SEED).config
    assert (config.testRound, config.threshold, config.concurrencyLimit) == (10, 0.8, 5)
    assert config.modelsToTest == ("local:smollm2", "custom:my-model")
    assert [server.transport for server in config.mcpServers] == ["stdio", "sse"]
    assert config.mcpServers[0].args == ("-y", "mcp-server")
    assert config.mcpServers[0].env == {"KEY": "value"}
    calls = config.testCases[0].expectedOutput
    assert calls is not None
    assert [call.toolName for call in calls] == ["calculate-bmi"]
    assert calls[0].parameters == {"weightKg": 90, "heightM": 1.8}
    assert (config.mode, config.extraParameters, config.executeTools) == ("json", "reject", False)


def test_an_expected_call_that_no_server_offers_is_a_warning_with_near_names(read, tmp_path: Path):
    suite = read(SEED)
    told = unknown_tools(suite, [ServerTool(server="local-server", name="calculate_bmi", input_schema={})])
    assert [warning.removeprefix(f"{tmp_path}/") for warning in told] == [
        "suite.yaml:12: testCases[0].expectedOutput.serverName: no server is called 'example-server': "
        "did you mean 'remote-server', 'local-server'?",
        "suite.yaml:19: testCases[1].expectedOutput.serverName: no server is called 'healthcare-server': "
        "did you mean 'local-server', 'remote-server'?",
    ]
    suite = read(GOOD)
    tools = [ServerTool(server="weather", name=name, input_schema={}) for name in ("forecasts", "alerts")]
    (warning,) = unknown_tools(suite, tools)
    assert warning.endswith("toolName: 'weather' has no tool 'forecast': did you mean 'forecasts'?")
    assert unknown_tools(suite, [ServerTool(server="weather", name="forecast", input_schema={})]) == []


def test_variables_are_filled_in_except_where_servers_are_told_secrets(read):
    text = changed("weather-server", "${TOOLS}/server") + "    env: {TOKEN: '${TOKEN}'}\n"
    (server,) = read(text, TOOLS="/opt", TOKEN="hush").config.mcpServers
    assert server.command == "/opt/server"
    assert server.env == {"TOKEN": "${TOKEN}"}


def test_settings_of_one_model_stand_beside_those_of_all(read):
    config = read(GOOD + "modelSettings:\n  temperature: 0.5\n  local:smollm2: {maxTokens: 9}\n").config
    settings = config.settings_of("local:smollm2")
    assert (settings.temperature, settings.maxTokens) == (0.5, 9)


def test_the_published_schema_is_current():
    assert published_schema() == schema_text(), "write what `schema_text()` gives to the file"
    Draft202012Validator.check_schema(config_schema())


ACCEPTED = {
    "good": GOOD,
    "seed": SEED,
    "sequence": changed(
        CALL, "    expectedToolUsage:\n    - {serverName: a, toolName: b}\n    - {serverName: a, toolName: c}\n"
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
    ["unknown key", "no models", "empty models", "unknown mode", "both spellings", "server with two ways", "no time"],
)
def test_an_editor_with_the_schema_sees_the_same_mistakes(tmp_path: Path, what: str):
    text, _ = TABLE[what]
    assert isinstance(text, str)
    (tmp_path / "suite.yaml").write_text(text)
    value = read_yaml(tmp_path / "suite.yaml").value
    assert list(Draft202012Validator(config_schema()).iter_errors(value))
