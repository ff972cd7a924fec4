"""Configurations for the tests: good ones, and every way in which one can be wrong."""

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
TURNS = """\
  - name: trip
    turns:
      - prompt: What is the weather in Oslo?
        expectedOutput: {serverName: weather, toolName: forecast, parameters: {city: Oslo}}
        order: any
      - prompt: And in Bergen?
        expectedToolUsage: {serverName: weather, toolName: forecast, parameters: {city: Bergen}}
"""
CALL = "    expectedOutput:\n      serverName: weather\n      toolName: forecast\n      parameters: {city: Oslo}\n"

WITH_TURNS = changed(CASE + " is the weather in Oslo?\n" + CALL, TURNS)

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
    "empty error": (
        changed("testCases:\n  - ", "testCases:\n  - expectedError: ''\n    "),
        "5: testCases[0].expectedError: '' is empty: write a part of the error, or true for any error",
    ),
    "content of a refusal": (
        changed("    command:", "    elicitation: [{action: decline, content: {a: 1}}]\n    command:"),
        "mcpServers[0].elicitation[0]: `content` has no meaning beside `action: decline`",
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
    "misspelt matcher": (
        changed(PARAMETERS, "parameters: {city: {value: oslo, caseInsensitve: true}}"),
        "9: testCases[0].expectedOutput.parameters.city.caseInsensitve: 'caseInsensitve' is no key of a matcher: "
        "did you mean 'caseInsensitive'?",
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
    "model with a tab": (
        changed("local:smollm2", '"local:smol\\tlm2"'),
        "3: modelsToTest[0]: 'local:smol\\tlm2' has unprintable characters: remove them",
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
    "no turns": (changed(TURNS[TURNS.index("turns:") :], "turns: []\n", WITH_TURNS), "6: testCases[0].turns: is empty"),
    "prompt beside turns": (
        changed("    turns:", "    prompt: Hello\n    turns:", WITH_TURNS),
        "6: testCases[0].prompt: belongs in a turn, if a case has `turns`: move it there",
    ),
    "results beside turns": (
        changed("    turns:", "    expectedResults: sun\n    turns:", WITH_TURNS),
        "6: testCases[0].expectedResults: belongs in a turn",
    ),
    "turn without a prompt": (
        changed("- prompt: And in Bergen?\n        expected", "- expected", WITH_TURNS),
        "10: testCases[0].turns[1].prompt: is missing: write what a person would ask",
    ),
    "turn without calls": (
        changed(
            "        expectedToolUsage: {serverName: weather, toolName: forecast, parameters: {city: Bergen}}\n",
            "",
            WITH_TURNS,
        ),
        "10: testCases[0].turns[1].expectedOutput: is missing: write {serverName, toolName, parameters}",
    ),
    "unknown key of a turn": (
        changed("order: any", "oder: any", WITH_TURNS),
        "9: testCases[0].turns[0].oder: is not a key that is known here: did you mean 'order'?",
    ),
    "misspelt matcher in a turn": (
        changed("{city: Bergen}", "{city: {value: x, caseInsensitve: true}}", WITH_TURNS),
        "11: testCases[0].turns[1].expectedToolUsage.parameters.city",
    ),
    "both spellings in a turn": (
        changed("order: any", "expectedToolUsage: null", WITH_TURNS),
        "9: testCases[0].turns[0].expectedToolUsage: 'expectedToolUsage' is another name for 'expectedOutput'",
    ),
    "turns as a text": (
        changed(TURNS[TURNS.index("turns:") :], "turns: two\n", WITH_TURNS),
        "6: testCases[0].turns: 'two': has to be a list: list messages of the user",
    ),
}
