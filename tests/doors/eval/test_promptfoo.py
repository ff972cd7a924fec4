"""Configurations of promptfoo are read as they are; a test with an unsupported part is left out, by name and line."""

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

# What cannot be read: each part is named, its test is left out, and the rest runs.
HALF = """\
prompts:
  - "Say {{ word }}"
  - file://prompt.sh
  - '[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "{{ word }}"}}]}]'
providers:
  - echo
  - replicate:meta/llama
  - opnai:gpt-5
  - {id: openai:gpt-5, config: {tools: []}}
  - openai:embedding:text-embedding-3-small
tests:
  - {vars: {word: hi}, assert: [{type: contains, value: hi}]}
  - {vars: {word: ho}, assert: [{type: contains, value: ho}, {type: webhook, value: "https://example.com"}]}
  - {vars: {word: he}, assert: [{type: contians, value: he}]}
  - {vars: {word: ha}, asserts: [{type: contains, value: ha}]}
  - {vars: {word: hu}, provider: openai:gpt-5}
  - {vars: {word: hy}, assert: [{type: llm-rubric, value: is polite}]}
sharing: true
tracing: {enabled: true}
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
    assert "not understood" not in done.stderr


def test_prompts_providers_and_tests_become_one_plan():
    plan, warnings = planned(MATRIX)
    assert warnings == ()
    assert [case.prompt for case in plan.cases[:2]] == ["Name the capital of France.", "Capital of France?"]
    assert [case.id for case in plan.cases] == [
        "in Europe · prompt 1",
        "in Europe · short",
        "Japan, Tokyo · prompt 1",
        "Japan, Tokyo · short",
    ]
    assert [(spec.name, spec.options) for spec in plan.subjects] == [
        ("openai:chat:gpt-5", {"model": "openai:gpt-5", "chat": True}),
        (
            "sonnet",
            {
                "model": "anthropic:claude-sonnet-4",
                "chat": True,
                "temperature": 0,
                "max_tokens": 50,
                "settings": {"top_p": 1},
            },
        ),
    ]
    scorers = plan.cases[0].scorers
    assert scorers is not None
    assert [(spec.name, spec.options) for spec in scorers] == [
        ("icontains", {"checks": [{"type": "icontains", "value": "Paris"}]}),
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
    assert warnings == ()
    done = bakeoff("eval", "--no-open")
    assert done.returncode == 0, "three quarters of the weight are enough for the threshold"


def test_what_is_not_supported_leaves_its_test_out_by_name_and_line(bakeoff: Bakeoff):
    plan, warnings = planned(HALF)
    assert [line.removeprefix("promptfooconfig.yaml:") for line in warnings] == [
        "19: tracing: is not supported, and not used",
        "7: providers[1]: is not a model that is known here: 'replicate:meta/llama' is left out",
        "8: providers[2]: is not a model that is known here (did you mean 'openai'?): 'opnai:gpt-5' is left out",
        "9: providers[3].config.tools: is not supported: 'openai:gpt-5' is left out",
        "10: providers[4]: is not a model that is known here: 'openai:embedding:text-embedding-3-small' is left out",
        "13: tests[1].assert[1].type: 'webhook' is not supported: the test is left out",
        "14: tests[2].assert[0].type: 'contians' is not supported (did you mean 'contains'?): the test is left out",
        "15: tests[3].asserts: is not supported: the test is left out",
        "16: tests[4].provider: is not supported: the test is left out",
        "17: tests[5].assert[0].type: no model is named that judges: write --judge MODEL: the test is left out",
        "3: prompts[1]: 'prompt.sh' is neither JavaScript nor Python: the prompt is left out",
        "4: prompts[2]: has messages with other parts than text, which are not supported: the prompt is left out",
    ]
    assert [spec.name for spec in plan.subjects] == ["echo"]
    assert [case.prompt for case in plan.cases] == ["Say hi"]
    checked = bakeoff("eval", "--check")
    assert checked.returncode == 0
    for told in ("assertion `contains`", "scorer `checks`", "tests[1].assert[1].type: 'webhook' is not supported"):
        assert told in checked.stdout
    assert checked.stderr == "", "the table says it all"
    done = bakeoff("eval", "--no-open")
    assert done.returncode == 0
    assert "warning: promptfooconfig.yaml:13: tests[1].assert[1].type: 'webhook' is not supported" in done.stderr


def specs_of(text: str) -> list[tuple[str, object]]:
    plan, _ = planned(text)
    return [(spec.name or spec.kind, spec.options) for spec in plan.cases[0].scorers or ()]


ONE = """\
prompts: ["{{ text }}"]
providers: [echo]
"""


def test_assertions_of_a_part_of_a_scenario_count(bakeoff: Bakeoff):
    plan, warnings = planned(
        ONE
        + """\
defaultTest: {metadata: {area: all}, options: {prefix: "> ", provider: openai:gpt-5}}
scenarios:
  - config: [{vars: {text: hi}, assert: [{type: equals, value: ho}], options: {suffix: " <"}}]
    tests: [{assert: [{type: contains, value: h}]}]
"""
    )
    assert warnings == ()
    assert (plan.cases[0].prompt, plan.cases[0].tags) == ("> hi <", {"area": "all"})
    text = Path("promptfooconfig.yaml").read_text()
    with pytest.raises(UsageError, match=r"scenarios\[0\].id: is not supported: the scenario is left out"):
        planned(text.replace("  - config:", "  - id: x\n    config:"))
    planned(text)
    assert bakeoff("eval", "--no-open").returncode == 1, "hi is not equal to ho"


JUDGED = """\
prompts: ["{{ text }}"]
providers: [openai:gpt-5]
tests:
  - vars: {text: a, context: c}
    assert:
      - {type: llm-rubric, value: "polite to {{ text }}", threshold: 0.6}
      - {type: llm-rubric, value: short, provider: "anthropic:messages:claude-sonnet-4", metric: Tone, weight: 2}
      - {type: factuality, value: true facts}
      - {type: context-recall, value: facts, threshold: 0.5}
      - {type: similar, value: b}
      - {type: not-is-refusal}
"""


def test_a_rubric_without_a_model_is_judged_by_the_option_or_the_first_model_and_that_is_said():
    plan, warnings = planned(JUDGED)
    assert [line for line in warnings if "openai:gpt-5 judges, because it is the first provider" in line]
    found = {spec.name: spec for spec in plan.cases[0].scorers or ()}
    own = {"model": "openai:gpt-5", "same_model": True}
    assert {name: (spec.kind, spec.options, spec.threshold) for name, spec in found.items()} == {
        "llm-rubric": ("judge", {"criteria": "polite to a", **own}, 0.6),
        "Tone": ("judge", {"criteria": "short", "model": "anthropic:claude-sonnet-4"}, None),
        "factuality": ("factuality", {"expected": "true facts", **own}, 0.4),
        "context-recall": ("context_recall", {"expected": "facts", **own}, 0.5),
        "similar": ("semantic", {"expected": "b", "model": "openai:text-embedding-3-large"}, 0.75),
        "not-is-refusal": ("refusal", own, None),
    }
    assert (found["not-is-refusal"].negated, found["Tone"].weight) == (True, 2)
    suite = read_suite(None, "groq:llama")
    judges = {str(spec.options.get("model")) for case in suite.cases for spec in case.scorers or ()}
    assert (suite.warnings, judges) == (
        (),
        {"groq:llama", "anthropic:claude-sonnet-4", "openai:text-embedding-3-large"},
    )
    # Where the test has a threshold, promptfoo compares that with the mean of the scores themselves.
    plan, _ = planned(JUDGED.replace("context: c}", "context: c}\n    threshold: 0.5"))
    assert [spec.threshold for spec in plan.cases[0].scorers or ()] == [None, None, 0.4, None, None, None]


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
    assert [name for name, _ in specs_of(ONE + MIXED)] == ["contains", "contains (2)", "contains (3)", "latency"]
    assert bakeoff("eval", "--no-open").returncode == 0, "three of four assertions hold"
    _, warnings = planned(ONE + MIXED.replace("threshold: 0.000001}", "threshold: 0.000001, weight: 2}"))
    assert warnings == ()
    assert bakeoff("eval", "--no-open").returncode == 1, "three of five parts of the weight hold"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("text,__expected,__threshold\na,a,1.2.3\n", "tests.csv:2: threshold: '1.2.3': has to be a number"),
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
        ("tests: [{vars: {text: a}, assert: [{type: webhook, value: x}]}]\n", "3: tests: none is left"),
    ],
)
def test_a_wrong_shape_is_an_error_with_its_line(text: str, told: str):
    with pytest.raises(UsageError) as error:
        planned(ONE + text)
    assert f"promptfooconfig.yaml:{told}" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("providers: [echo]", "providers: [golang:a.go]", "3: providers: none is left that can be used"),
        (
            "{{ text }}",
            "{{ text | nofilter }}",
            "2: prompts[0]: this is not a Jinja template: No filter named 'nofilter'",
        ),
        ("type: contains-json", "value: x", "11: tests[5].assert[0]: an assertion has to be an object with a `type`"),
        (
            "threshold: 60000}]",
            "threshold: 60000}], threshold: 2",
            "12: tests[6].threshold: 2: has to be a number",
        ),
    ],
)
def test_what_is_wrong_is_an_error_with_its_line(old: str, new: str, told: str):
    with pytest.raises(UsageError) as error:
        planned(ASSERTIONS.replace(old, new))
    assert f"promptfooconfig.yaml:{told}" in str(error.value)


@pytest.mark.parametrize(
    ("assertion", "told"),
    [
        ("{type: regex, value: '('}", "'(' is not a regular expression"),
        ("{type: latency}", "scorer 'latency': option max_ms"),
        ("{type: levenshtein, value: a, threshold: 1.2.3}", "'1.2.3': has to be a number"),
        ("{type: similar, value: a, threshold: b}", "threshold: 'b': has to be a number"),
        ("{type: context-recall, value: a}", "needs a variable `context`"),
        ("{type: javascript, value: file://nothing.js}", "there is no file 'nothing.js'"),
        ("{type: contains, value: file://value.py}", "is code that computes a value, which is not supported"),
        ("{type: select-best, value: a}", "'select-best' is not supported"),
        ("{type: contains, value: a, rubricPrompt: b}", "rubricPrompt: is not supported"),
    ],
)
def test_an_assertion_that_cannot_be_made_leaves_its_test_out(assertion: str, told: str):
    plan, warnings = planned(f"{ONE}tests: [{{vars: {{text: a}}, assert: [{assertion}]}}, {{vars: {{text: b}}}}]\n")
    assert [case.prompt for case in plan.cases] == ["b"]
    assert [line for line in warnings if told in line and line.endswith("the test is left out")], warnings


KEPT = """\
env: {TEAM_OF_FILE: blue}
assertionTemplates: {short: {type: contains, value: blue}}
scenarios: [{config: file://config.yaml, tests: file://more.yaml}]
tests:
  - file://tests.csv
  - {vars: {text: blue}, assert: [{$ref: '#/assertionTemplates/short'}, {type: equals, value: '{{env.TEAM_OF_FILE}}'}]}
  - {vars: {text: '{"b": [1], "a": 2}'}, assert: [{type: equals, value: {a: 2, b: [1]}}]}
  - vars: {text: a}
    assert:
      - {type: contains, value: a}
      - {type: assert-set, threshold: 0.5, assert: [{type: not-levenshtein, value: a}, {type: contains, value: z}]}
"""


def test_no_part_is_read_with_another_meaning(here: Path, bakeoff: Bakeoff):
    (here / "tests.csv").write_text("text,__expected\na,rouge-n(0.5): a\na,not-is-xml\na,a\n")
    (here / "config.yaml").write_text("- {vars: {text: c}}\n")
    (here / "more.yaml").write_text("- {assert: [{type: equals, value: c}]}\n")
    plan, warnings = planned(ONE + KEPT)
    assert [case.prompt for case in plan.cases] == ["a", "blue", '{"b": [1], "a": 2}', "c"]
    env, *left_out = warnings
    assert "env: TEAM_OF_FILE: templates use it, but providers and code see only" in env
    assert ["'rouge-n'" in left_out[0], "'not-is-xml'" in left_out[1], "a set with a threshold" in left_out[2]] == [
        True
    ] * 3
    assert bakeoff("eval", "--no-open").returncode == 0


def test_a_prompt_that_needs_earlier_answers_is_left_out():
    with pytest.raises(UsageError, match=r"prompts\[0\]: `_conversation` needs the answers to earlier tests"):
        planned(ONE.replace("{{ text }}", "{% for m in _conversation %}{{ m.input }}{% endfor %}{{ text }}"))
