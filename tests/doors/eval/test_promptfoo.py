"""Configurations of promptfoo: what is deterministic is read as it is, and everything else is named."""

import json
from pathlib import Path

import pytest

from bakeoff.doors.eval.find import read_suite
from bakeoff.doors.eval.plan import build_plan
from bakeoff.errors import UsageError
from bakeoff.plan import Plan

from ...warm_bakeoff import Bakeoff

# One prompt, assertions of every deterministic type.
ASSERTIONS = """\
description: every deterministic assertion
prompts: ["{{ text }}"]
providers: [echo]
tests:
  - {vars: {text: Paris}, assert: [{type: equals, value: Paris}, {type: regex, value: "^P"}]}
  - {vars: {text: I like Paris}, assert: [{type: contains, value: Paris}, {type: icontains, value: PARIS}]}
  - {vars: {text: a b}, assert: [{type: contains-any, value: [b, c]}, {type: contains-all, value: [a, b]}]}
  - {vars: {text: a b}, assert: [{type: not-contains, value: c}, {type: starts-with, value: a}]}
  - vars: {text: '{"a": 1}'}
    assert: [{type: is-json, value: {required: [a]}}, {type: not-is-json, value: {required: [b]}}]
  - {vars: {text: 'so: [1].'}, assert: [{type: contains-json}, {type: levenshtein, value: 'so: [2].', threshold: 1}]}
  - {vars: {text: quick}, assert: [{type: latency, threshold: 60000}]}
"""

# Two prompts, two providers with settings, default test, variables in assertions.
MATRIX = """\
prompts:
  - "Name the capital of {{country}}."
  - {raw: "Capital of {{country}}?", label: short}
providers:
  - openai:chat:gpt-5
  - {id: "anthropic:messages:claude-sonnet-4", label: sonnet, config: {temperature: 0, max_tokens: 50, top_p: 1}}
defaultTest:
  assert: [{type: latency, threshold: 5000}]
tests:
  - {description: in Europe, vars: {country: France, capital: Paris}, assert: [{type: icontains, value: "{{capital}}"}]}
  - {vars: {country: Japan, capital: Tokyo}, assert: [{type: icontains, value: "{{capital}}"}], threshold: 0.5}
evaluateOptions: {repeat: 2, maxConcurrency: 3}
"""

# Tests in a CSV file, prompts in a text file.
FILES = """\
prompts: file://prompts.txt
providers: echo
tests: file://tests.csv
"""
PROMPTS = "Say {{ word }}\n---\nPlease say {{ word }}\n"
TESTS = """\
word,__expected,__expected2,__description
Oslo,contains: Oslo,,first
"Rome, Italy","icontains-any: rome,paris",starts-with: Say,
is-json,is-json,,
"""

# Lists of variables, scenarios, weights and sets.
COMBINED = """\
prompts: ["{{ greeting }}, {{ name }}!"]
providers: [echo]
tests:
  - vars: {greeting: [Hello, Hi], name: [Ada, Bob]}
    assert: [{type: contains, value: "{{ name }}", weight: 3}, {type: contains, value: Hello}]
    threshold: 0.75
scenarios:
  - config: [{vars: {greeting: Hey}}, {vars: {greeting: Yo}}]
    tests:
      - vars: {name: Eve}
        assert: [{type: assert-set, assert: [{type: ends-with, value: "!"}, {type: contains, value: Eve}]}]
"""

# What cannot be read: each part is named, and the rest runs.
HALF = """\
prompts:
  - "Say {{ word }}"
  - file://prompt.py
  - '[{"role": "user", "content": "{{ word }}"}]'
providers:
  - echo
  - exec:rm -rf /
  - python:provider.py
  - openai:embedding:text-embedding-3-small
tests:
  - vars: {word: hi}
    assert:
      - {type: contains, value: hi}
      - {type: javascript, value: output.length < 10}
      - {type: llm-rubric, value: is polite}
      - {type: similar, value: hello, threshold: 0.8}
  - {vars: {word: ho}, assert: [{type: python, value: "True"}]}
sharing: true
outputPath: out.json
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(text: str) -> tuple[Plan, tuple[str, ...]]:
    Path("promptfooconfig.yaml").write_text(text)
    suite = read_suite(None)
    return build_plan(suite), suite.warnings


def test_every_deterministic_assertion_holds_on_an_output_that_fits_it(bakeoff: Bakeoff):
    Path("promptfooconfig.yaml").write_text(ASSERTIONS)
    done = bakeoff("eval", "--json", "--no-open")
    found = json.loads(done.stdout)
    assert (done.returncode, found["outcome"]) == (0, "passed"), done.stderr
    assert found["summary"]["subjects"][0]["passed"] == 7
    assert "not supported" not in done.stderr


def test_prompts_providers_and_tests_become_one_plan():
    plan, warnings = planned(MATRIX)
    assert warnings == ("promptfooconfig.yaml:6: providers[1].config.top_p: is not supported and is ignored",)
    assert [case.prompt for case in plan.cases[:2]] == ["Name the capital of France.", "Capital of France?"]
    assert [case.id for case in plan.cases] == [
        "in Europe · prompt 1",
        "in Europe · short",
        "Japan, Tokyo · prompt 1",
        "Japan, Tokyo · short",
    ]
    assert [(spec.name, spec.options) for spec in plan.subjects] == [
        ("openai:chat:gpt-5", {"model": "openai:gpt-5"}),
        ("sonnet", {"model": "anthropic:claude-sonnet-4", "temperature": 0, "max_tokens": 50}),
    ]
    scorers = plan.cases[0].scorers
    assert scorers is not None
    assert [(spec.kind, spec.options) for spec in scorers] == [
        ("checks", {"checks": [{"type": "icontains", "value": "Paris"}]}),
        ("latency", {"max_ms": 5000}),
    ]
    assert plan.rounds == 2
    assert plan.settings["limits"] == {"jobs": 3}
    rule = plan.cases[2].pass_rule
    assert rule is not None
    assert rule.threshold == 0.5


def test_prompts_and_tests_are_read_from_files(here: Path, bakeoff: Bakeoff):
    (here / "prompts.txt").write_text(PROMPTS)
    (here / "tests.csv").write_text(TESTS)
    plan, warnings = planned(FILES)
    assert warnings == ()
    assert {case.tags["prompt"] for case in plan.cases} == {"prompts 1", "prompts 2"}
    assert plan.cases[0].id == "first · prompts 1"
    done = bakeoff("eval", "--json", "--no-open")
    verdicts = json.loads(done.stdout)["summary"]["subjects"][0]
    # "Say is-json" is not JSON, twice, and "Please say Rome, Italy" does not start with "Say".
    assert (done.returncode, verdicts["passed"], verdicts["judged"]) == (1, 3, 6)


def test_lists_of_values_scenarios_weights_and_thresholds_are_as_in_promptfoo(bakeoff: Bakeoff):
    plan, warnings = planned(COMBINED)
    assert [case.prompt for case in plan.cases] == [
        *("Hello, Ada!", "Hello, Bob!", "Hi, Ada!", "Hi, Bob!"),
        *("Hey, Eve!", "Yo, Eve!"),
    ]
    assert [line for line in warnings if "ends-with" in line], "promptfoo has no such assertion"
    done = bakeoff("eval", "--no-open")
    assert done.returncode == 0, "three quarters of the weight are enough for the threshold"


def test_what_is_not_understood_is_named_with_its_line_and_never_run(here: Path, bakeoff: Bakeoff):
    plan, warnings = planned(HALF)
    assert [line.removeprefix("promptfooconfig.yaml:") for line in warnings] == [
        "18: sharing: is not supported and is ignored",
        "19: outputPath: is not supported and is ignored",
        "3: prompts[1]: prompt.py is code, which is not run: the prompt is left out",
        "4: prompts[2]: is a list of chat messages, which is not supported: it is left out",
        "7: providers[1]: 'exec:rm -rf /' runs a program or an address of its own, which is left out: put a "
        "`command` or `function` into the `subjects` of a bakeoff.yaml",
        "8: providers[2]: 'python:provider.py' runs a program or an address of its own, which is left out: put a "
        "`command` or `function` into the `subjects` of a bakeoff.yaml",
        "9: providers[3]: 'openai:embedding:text-embedding-3-small' is not a model that is known here: it is left out",
        "14: tests[0].assert[1].type: 'javascript' is not supported: the assertion is left out",
        "15: tests[0].assert[2].type: 'llm-rubric' names no model here: write `provider: openai:…` beside it; the "
        "assertion is left out",
        "16: tests[0].assert[3].type: 'similar' is not supported: the assertion is left out",
        "17: tests[1].assert[0].type: 'python' is not supported: the assertion is left out",
        "17: tests[1]: none of its assertions is left: the test is left out",
    ]
    assert [spec.name for spec in plan.subjects] == ["echo"]
    assert [case.prompt for case in plan.cases] == ["Say hi"]
    done = bakeoff("eval", "--no-open")
    assert done.returncode == 0
    assert "warning: promptfooconfig.yaml:14: tests[0].assert[1].type: 'javascript' is not supported" in done.stderr


def specs_of(text: str) -> list[tuple[str, object]]:
    plan, _ = planned(text)
    return [(spec.name or spec.kind, spec.options) for spec in plan.cases[0].scorers or ()]


ONE = """\
prompts: ["{{ text }}"]
providers: [echo]
"""


def test_assertions_of_a_part_of_a_scenario_count_and_other_keys_are_named(bakeoff: Bakeoff):
    plan, warnings = planned(
        ONE
        + """\
defaultTest: {metadata: {area: all}, options: {transform: output.trim(), provider: openai:gpt-5}}
scenarios:
  - config: [{vars: {text: hi}, assert: [{type: equals, value: ho}], options: {prefix: a}}]
    tests: [{assert: [{type: contains, value: h}]}]
"""
    )
    assert [line.removeprefix("promptfooconfig.yaml:") for line in warnings] == [
        "3: defaultTest.options.transform: is not supported and is ignored",
        "5: scenarios[0].config[0].options.prefix: is not supported and is ignored",
    ]
    assert plan.cases[0].tags == {"area": "all"}
    assert bakeoff("eval", "--no-open").returncode == 1, "hi is not equal to ho"


def test_the_threshold_of_a_rubric_is_the_degree_that_is_enough():
    judge = "{type: llm-rubric, value: polite, provider: openai:gpt-5, threshold: 0.6}"
    ((_, options),) = specs_of(f"{ONE}tests: [{{vars: {{text: a}}, assert: [{judge}]}}]\n")
    assert isinstance(options, dict)
    assert list(options["choices"].values()) == [1.0, 1.0, 0.0, 0.0, 0.0]
    # Where the test has a threshold, promptfoo compares that with the score of the rubric itself.
    ((_, options),) = specs_of(f"{ONE}tests: [{{vars: {{text: a}}, assert: [{judge}], threshold: 0.5}}]\n")
    assert isinstance(options, dict)
    assert "choices" not in options


MIXED = """\
tests:
  - vars: {text: a b c}
    threshold: 0.75
    assert:
      - {type: contains, value: a}
      - {type: contains, value: b}
      - {type: contains, value: c}
      - {type: latency, threshold: 0.000001}
"""


def test_the_threshold_of_a_test_is_for_the_mean_of_all_its_assertions(bakeoff: Bakeoff):
    assert [name for name, _ in specs_of(ONE + MIXED)] == ["checks", "checks 2", "checks 3", "latency"]
    assert bakeoff("eval", "--no-open").returncode == 0, "three of four assertions hold"
    _, warnings = planned(ONE + MIXED.replace("value: a}", "value: a, weight: 2}") + "  - {vars: {text: d}}\n")
    assert warnings == (
        "promptfooconfig.yaml:4: tests[0]: `threshold` with different weights is understood only for conditions on the "
        "text: the test is left out",
    )


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("text,__expected,__threshold\na,a,1.2.3\n", "tests.csv:2: threshold: '1.2.3': has to be a number"),
        ("text,__expected\na,levenshtein(1.2.3): a\n", "tests.csv:2: assert[0]: '1.2.3': has to be a number"),
    ],
)
def test_a_cell_that_is_no_number_is_an_error_with_its_line(here: Path, table: str, told: str):
    (here / "tests.csv").write_text(table)
    with pytest.raises(UsageError) as error:
        planned(f"{ONE}tests: file://tests.csv\n")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("defaultTest: {vars: [a]}\nscenarios: [{config: [{}], tests: [{}]}]\n", "3: defaultTest.vars: "),
        ("scenarios: [{config: [{vars: [a]}], tests: [{}]}]\n", "3: scenarios[0].config[0].vars: "),
        ("scenarios: [{config: [5], tests: [{}]}]\n", "3: scenarios[0].config[0]: has to be an object"),
        ("tests: [{vars: {text: a}, assert: [{type: python, value: x}]}]\n", "3: tests: none is left"),
    ],
)
def test_a_wrong_shape_is_an_error_with_its_line(text: str, told: str):
    with pytest.raises(UsageError) as error:
        planned(ONE + text)
    assert f"promptfooconfig.yaml:{told}" in str(error.value)


def test_a_similar_assertion_with_a_threshold_that_is_no_number_is_named_and_left_out(here: Path):
    (here / "tests.csv").write_text("text,__expected,__expected2\na,similar(1.2.3): a,a\n")
    _, warnings = planned(f"{ONE}tests: file://tests.csv\n")
    assert warnings == ("tests.csv:2: assert[0].type: 'similar' is not supported: the assertion is left out",)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("providers: [echo]", "providers: [exec:true]", "3: providers: none is left that can be used"),
        ("providers: [echo]", "providers: [exec:true]", "3: providers[0]: 'exec:true' runs a program"),
        (
            "type: equals, value: Paris",
            "type: regex, value: '('",
            "5: tests[0].assert[0]: '(' is not a regular expression",
        ),
        ("type: latency, threshold: 60000", "type: latency", "12: tests[6].assert[0]: scorer 'latency': option max_ms"),
        (
            "{{ text }}",
            "{{ txet }}",
            "2: prompts[0]: the template uses the variable 'txet', which is not set: did you mean",
        ),
        (
            "type: equals, value: Paris",
            "type: equals, value: '{{ nothing }}'",
            "5: tests[0].assert[0]: the template uses",
        ),
        ("type: contains-json", "value: x", "11: tests[5].assert[0]: an assertion has to be an object with a `type`"),
        (
            "threshold: 60000",
            "threshold: 60000}], threshold: 2, x: [{a: b",
            "12: tests[6].threshold: 2: has to be a number",
        ),
    ],
)
def test_what_is_wrong_is_an_error_with_its_line(old: str, new: str, told: str):
    with pytest.raises(UsageError) as error:
        planned(ASSERTIONS.replace(old, new))
    assert f"promptfooconfig.yaml:{told}" in str(error.value)
