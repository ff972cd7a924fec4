"""Plans of configurations: prompts × cases, with variables, tags, scorers and limits."""
# ruff: noqa: E501 - configurations

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.eval.find import read_suite
from bakeoff.doors.eval.plan import EvalRequest, build_plan
from bakeoff.errors import UsageError
from bakeoff.plan import Plan

from ...warm_bakeoff import Bakeoff


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(text: str, **request: Any) -> Plan:
    Path("bakeoff.yaml").write_text(text)
    return build_plan(read_suite(None), EvalRequest(**request))


REST = "subjects: [oracle]\nscorers: [exact]\n"


def test_without_subjects_the_embedded_model_is_asked_which_needs_no_key():
    plan = planned("cases: [{input: a, expected: b}]\nscorers: [exact]\n")
    assert [(spec.kind, spec.options) for spec in plan.subjects] == [("model", {"model": "local:smollm2"})]


def test_every_prompt_is_tried_with_every_case_and_the_same_case_is_one_cluster():
    plan = planned(
        REST
        + "prompts: [{name: one, text: '1 {{ input }}'}, '2 {{ x }}']\ncases: [{input: a, vars: {x: b}, expected: c}]\n"
    )
    assert [(case.id, case.prompt, case.tags) for case in plan.cases] == [
        ("a · one", "1 a", {"cluster": "a", "prompt": "one"}),
        ("a · prompt 2", "2 b", {"cluster": "a", "prompt": "prompt 2"}),
    ]
    assert plan.cases[0].variables == {"x": "b"}


def test_a_variable_called_self_is_refused_only_where_a_template_uses_it():
    cases = "cases: [{vars: {self: kind, args: b}, expected: c}]\n"
    assert planned(f"{REST}prompts: 'Be yourself, {{{{ args }}}}'\n{cases}").cases[0].prompt == "Be yourself, b"
    with pytest.raises(UsageError, match=r"bakeoff.yaml:3: prompts: `self` has a meaning of its own in Jinja"):
        planned(f"{REST}prompts: 'Be {{{{ self }}}}'\n{cases}")


def test_prompts_without_cases_are_one_case_each():
    plan = planned("prompts: [Say hi., Say ho.]\nsubjects: [nop]\nscorers: [{checks: [{max-words: 3}]}]\n")
    assert [(case.id, case.tags) for case in plan.cases] == [("Say hi.", {}), ("Say ho.", {})]


def test_prompt_files_are_found_by_a_pattern_and_named_after_themselves(here: Path):
    for name in ("brief", "long"):
        (here / f"{name}.txt").write_text(f"{name}: {{{{ input }}}}\n")
    plan = planned(REST + "prompts: file:*.txt\ncases: [{input: a, expected: b}]\n")
    assert [case.prompt for case in plan.cases] == ["brief: a", "long: a"]
    assert [case.tags["prompt"] for case in plan.cases] == ["brief", "long"]


def test_values_of_cases_are_never_taken_for_templates():
    plan = planned(REST + "prompts: '{{ input }}'\ncases: [{input: '{{ 7 * 7 }}', expected: b}]\n")
    assert plan.cases[0].prompt == "{{ 7 * 7 }}"


def test_an_inserted_case_changes_the_key_of_no_other():
    before = planned(REST + "cases: [{input: a, expected: b}]\n")
    after = planned(REST + "cases: [{input: new, expected: x}, {input: a, expected: b}]\n")
    assert before.trial(0).attempt_key in {trial.attempt_key for trial in after.trials()}


def test_a_case_has_scorers_and_a_threshold_of_its_own(bakeoff: Bakeoff):
    Path("bakeoff.yaml").write_text(
        "subjects: [{name: s, scripted: Paris and Rome}]\nscorers: [exact]\ncases:\n"
        "  - {input: a, expected: [Paris, Oslo], scorers: [contains], threshold: 0.5}\n"
        "  - {input: b, expected: Paris and Rome}\n"
    )
    done = bakeoff("eval", "--json", "--no-open")
    summary = json.loads(done.stdout)["summary"]["subjects"][0]
    assert (done.returncode, summary["score"]) == (0, 0.75), done.stdout


@pytest.mark.parametrize("own", ["", ", threshold: 0.5"])
def test_a_threshold_of_a_case_judges_each_of_its_trials_as_that_of_the_file_does(own: str, bakeoff: Bakeoff):
    Path("alternating.py").write_text("count = 0\ndef f(_):\n    global count\n    count += 1\n    return count % 2\n")
    Path("bakeoff.yaml").write_text(
        "subjects: [{name: s, function: alternating:f}]\nscorers: [exact]\nthreshold: 0.5\nrounds: 2\nlimits: {jobs: 1}\n"
        f"cases: [{{input: a, expected: 1{own}}}, {{input: b, expected: 0}}, {{input: c, expected: 1}}]\n"
    )
    done = bakeoff("eval", "--json", "--no-open")
    (subject,) = json.loads(done.stdout)["summary"]["subjects"]
    assert (done.returncode, sum(subject["verdicts"].values())) == (1, 6)
    assert subject["judged"] == 6, "every trial is judged by itself"


PLAIN = """\
subjects: [{name: right, scripted: "ok, hello: 4"}, {name: wrong, scripted: bye}]
cases:
  - {name: texts, input: a, scorers: [contains: hello, contains: ok, regex: ^ok, icontains: HELLO, not-contains: bye, ends-with: 4]}
  - {name: own, input: b, expected: something else, scorers: [exact: "ok, hello: 4"]}
"""


def test_a_plain_value_of_a_scorer_is_what_it_looks_for(bakeoff: Bakeoff):
    Path("bakeoff.yaml").write_text(PLAIN)
    done = bakeoff("eval", "--json", "--no-open")
    scores = {one["subject"]: one["score"] for one in json.loads(done.stdout)["summary"]["subjects"]}
    assert scores == {"right": 1.0, "wrong": 0.0}, done.stderr
    names = [spec.name or spec.kind for spec in planned(PLAIN).cases[0].scorers or ()]
    assert names == ["contains", "contains (2)", "regex", "icontains", "not-contains", "ends-with"]


@pytest.mark.parametrize("answer", ['{"b": [1, 2], "a": 1.0}', '{\n  "a": 1, "b": [1, 2]\n}'])
@pytest.mark.parametrize("scorer", ["exact", "json", "structured"])
def test_an_expected_object_in_a_cell_is_compared_with_the_object_of_the_answer(
    scorer: str, answer: str, here: Path, bakeoff: Bakeoff
):
    (here / "cases.csv").write_text('input,expected\nx,"{""a"": 1, ""b"": [1, 2]}"\n')
    subjects = [{"name": "same", "scripted": answer}, {"name": "other", "scripted": '{"a": true, "b": [1, 2]}'}]
    (here / "bakeoff.yaml").write_text(
        json.dumps({"subjects": subjects, "cases": "cases.csv", "scorers": [scorer]}), "utf-8"
    )
    done = bakeoff("eval", "--json", "--no-open")
    scores = {one["subject"]: one["score"] for one in json.loads(done.stdout)["summary"]["subjects"]}
    assert scores == {"same": 1.0, "other": 0.0}, done.stderr


FIELDS = """\
subjects:
  - name: good
    scripted: |
      Here it is:
      ```json
      {"category": " Billing", "items": [{"id": 7}]}
      ```
  - {name: text, scripted: "category: billing"}
  - {name: empty, scripted: "{}"}
  - oracle
transform: category
cases:
  - {name: of the file, input: x, expected: " Billing"}
  - {name: of the case, input: y, expected: BILLING 1, transform: [category, "{{ output | trim | upper }} {{ n }}"], vars: {n: 1}}
  - {name: of the scorer, input: z, expected: 7, transform: [], scorers: [{exact: {}, path: "items[0].id"}, {not-contains: x, path: category}]}
scorers: [exact]
"""


def test_a_transform_chooses_what_is_scored_and_one_that_fails_is_a_failure_with_its_reason(
    here: Path, bakeoff: Bakeoff
):
    (here / "bakeoff.yaml").write_text(FIELDS)
    done = bakeoff("eval", "--json", "--no-open")
    scores = {one["subject"]: one["score"] for one in json.loads(done.stdout)["summary"]["subjects"]}
    assert scores == {"good": 1.0, "text": 0.0, "empty": 0.0, "oracle": 1.0}, done.stderr
    told = next(here.glob("results/runs/*/journal.jsonl")).read_text("utf-8")
    assert "`category` cannot be read from the answer: 'category: billing' is not JSON" in told
    assert "`items[0].id` cannot be read from the answer: it has no value there" in told
    assert '"transformed":7' in told


def test_a_transform_is_part_of_a_scorer_and_an_edited_one_scores_answers_again(here: Path, bakeoff: Bakeoff):
    plan = planned(FIELDS)
    assert [spec.transform for spec in plan.scorers] == [("category",)]
    assert [[spec.transform for spec in case.scorers or ()] for case in plan.cases[1:]] == [
        [("category", "{{ output | trim | upper }} {{ n }}")],
        [("items[0].id",), ("category",)],
    ]
    edited = planned(FIELDS.replace("transform: category", "transform: items"))
    keys = [(trial.attempt_key, trial.score_key) for trial in (plan.trial(0), edited.trial(0))]
    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]


def test_a_row_of_a_table_has_a_transform_of_its_own(here: Path, bakeoff: Bakeoff):
    (here / "cases.csv").write_text("input,expected,transform\nx,7,items[0].id\ny,Oslo,\n")
    answers = {"x": '{"items": [{"id": 7}]}', "y": "Oslo"}
    suite = {"subjects": [{"scripted": {"answers": answers}}], "cases": "cases.csv", "scorers": ["exact"]}
    (here / "bakeoff.yaml").write_text(json.dumps(suite))
    done = bakeoff("eval", "--no-open")
    assert done.returncode == 0, done.stdout


def test_limits_of_the_file_count_unless_the_command_line_sets_others(bakeoff: Bakeoff):
    Path("bakeoff.yaml").write_text(
        "subjects: [{name: s, scripted: {default: {output: b, usage: {input: 10, cost: 1}}}}]\nscorers: [exact]\n"
        "cases: [{input: a, expected: b}, {input: c, expected: b}, {input: d, expected: b}]\n"
        "limits: {max_cost: 1.5, jobs: 1}\n"
    )
    done = bakeoff("eval", "--json", "--no-open")
    assert (done.returncode, json.loads(done.stdout)["summary"]["subjects"][0]["verdicts"]["budget"]) == (3, 2)
    assert bakeoff("eval", "--json", "--no-open", "--max-cost", "9").returncode == 0


def test_prompts_subjects_and_cases_are_selected_by_name_and_a_wrong_name_is_told():
    text = REST.replace("[oracle]", "[oracle, nop]") + "prompts: [{name: p, text: a}, {name: q, text: b}]\n"
    text += "cases: [{name: one, input: x, expected: y, tags: [smoke]}, {name: two, input: x, expected: y}]\n"
    plan = planned(text, prompts=("q",), subjects=("nop",), cases=("smoke",))
    assert [(trial.case.id, trial.subject.name) for trial in plan.trials()] == [("one · q", "nop")]
    with pytest.raises(UsageError, match="--subject 'pon': there are oracle, nop"):
        planned(text, subjects=("pon",))
    with pytest.raises(UsageError, match=r"no case of bakeoff.yaml has a name or tag 'three'"):
        planned(text, cases=("three",))


def test_the_table_of_pyproject_is_read_and_its_errors_name_their_line(here: Path, bakeoff: Bakeoff):
    toml = '[project]\nname = "x"\n\n[tool.bakeoff]\nsubjects = ["oracle"]\nscorers = ["exact"]\n\n'
    for case in ('input = "a"\nexpected = "b"\n', 'input = "c"\nexpcted = "d"\n'):
        toml += f"[[tool.bakeoff.cases]]\n{case}\n"
    (here / "pyproject.toml").write_text(toml)
    with pytest.raises(UsageError, match=r"pyproject.toml:14: cases\[1\].expcted: is not a key that is known here"):
        read_suite(None)
    (here / "pyproject.toml").write_text(toml.replace("expcted", "expected"))
    done = bakeoff("eval", "--no-open")
    assert done.returncode == 0, done.stderr


def test_a_folder_without_a_configuration_says_how_to_get_one(bakeoff: Bakeoff):
    done = bakeoff("eval")
    assert done.returncode == 2
    assert "there is no bakeoff.yaml in" in done.stderr
    assert "bakeoff init eval" in done.stderr


def test_a_run_can_be_split_into_shards_and_joined(here: Path, bakeoff: Bakeoff):
    (here / "bakeoff.yaml").write_text(REST + "cases: [{input: a, expected: b}, {input: c, expected: d}]\n")
    for number in (1, 2):
        assert bakeoff("eval", "--shard", f"{number}/2", "--no-open").returncode == 0
    runs = sorted(str(path) for path in (here / "results" / "runs").iterdir())
    assert bakeoff("merge", *runs).returncode == 0


def test_prompts_are_shown_with_subjects_and_compared_on_the_same_cases(here: Path, bakeoff: Bakeoff):
    cases = "".join(f"  - {{input: c{n}, expected: yes}}\n" for n in range(12))
    script = ", ".join(f"'c{n} · good': yes" for n in range(12))
    (here / "bakeoff.yaml").write_text(
        f"subjects: [{{name: s, scripted: {{answers: {{{script}}}, default: no}}}}]\nscorers: [exact]\n"
        f"prompts: [{{name: good, text: 'a {{{{ input }}}}'}}, {{name: bad, text: 'b {{{{ input }}}}'}}]\ncases:\n{cases}"
    )
    done = bakeoff("eval", "--no-open", "--exit-zero", COLUMNS="120")
    assert "'good' is better than 'bad' by 100.0 points" in done.stdout, done.stdout
    assert "good    s        100.0 %" in done.stdout
    page = next((here / "results").glob("runs/*/report.html")).read_text()
    assert "is better than" in page


def test_a_model_with_servers_is_an_agent_and_one_with_an_address_has_its_own_provider():
    text = "cases: [{input: a, expected: b}]\nscorers: [exact]\nsubjects:\n"
    text += "  - {model: local:smollm2, system: Be brief., mcp: [{name: clock, command: clock-server}], max_steps: 3}\n"
    text += "  - {name: mine, model: mine:m, base_url: http://127.0.0.1:9/v1, key_variable: MY_KEY, temperature: 0}\n"
    agent, mine = planned(text).subjects
    assert (agent.kind, agent.options["max_steps"], agent.options["system"]) == ("agent", 3, "Be brief.")
    assert agent.options["mcp"] == [{"name": "clock", "command": "clock-server"}]
    assert (mine.kind, mine.options["temperature"]) == ("model", 0)
    assert mine.options["providers"] == {"mine": {"base_url": "http://127.0.0.1:9/v1", "key_variable": "MY_KEY"}}


def test_a_system_prompt_can_be_a_file(here: Path):
    (here / "system.txt").write_text("Be brief.\n")
    text = "cases: [{input: a, expected: b}]\nscorers: [exact]\nsubjects: [{model: local:smollm2, system: file:system.txt}]\n"
    assert planned(text).subjects[0].options["system"] == "Be brief."


def test_the_judge_of_the_file_serves_all_scorers_that_ask_a_model():
    text = "cases: [{input: a, expected: b}]\nsubjects: [oracle]\njudge: openai:gpt-5\nscorers: [exact, {judge: Is it polite?}]\n"
    exact, judge = planned(text).scorers
    assert (exact.options, judge.options) == ({}, {"criteria": "Is it polite?", "model": "openai:gpt-5"})


def test_functions_lie_beside_the_file_wherever_the_command_is_typed(here: Path, bakeoff: Bakeoff):
    (here / "sub").mkdir()
    (here / "sub" / "functions_of_sub.py").write_text("def up(prompt):\n    return prompt.upper()\n")
    subject = "subjects: [{name: up, function: 'functions_of_sub:up'}]"
    cases = 'prompts: "{{ input }}"\ncases: [{input: a, expected: A}]\nscorers: [exact]'
    (here / "sub" / "bakeoff.yaml").write_text(f"{subject}\n{cases}\n")
    done = bakeoff("eval", "sub", "--no-open")
    assert (done.returncode, "up scored 100.0 %" in done.stdout) == (0, True), done.stderr


CODE = """\
subjects: [{name: right, scripted: '{"n": 3}'}, {name: wrong, scripted: "three"}]
cases: [{input: x, vars: {most: 9}}]
scorers:
  - python: len(output) < context["vars"]["most"]
  - javascript: |
      const said = JSON.parse(output)
      return {pass: said.n === 3, score: 0.5, reason: 'not 3'}
  - {exact: 4, transform: {javascript: "JSON.parse(output).n + 1"}, name: field}
  - {python: "{'pass': True, 'score': 0.2}", name: graded, threshold: 0.1}
"""


def test_code_in_a_file_judges_answers_in_one_process_of_each_language(here: Path, bakeoff: Bakeoff):
    (here / "bakeoff.yaml").write_text(CODE)
    done = bakeoff("eval", "--json", "--no-open")
    scores = {one["subject"]: one["score"] for one in json.loads(done.stdout)["summary"]["subjects"]}
    assert scores == {"right": 1.0, "wrong": 0.0}, done.stderr
    told = next(here.glob("results/runs/*/journal.jsonl")).read_text("utf-8")
    assert "the transform `JSON.parse(output).n + 1` fails: SyntaxError" in told
    assert "the code raised SyntaxError" in told


def test_an_edited_file_with_code_is_another_scorer(here: Path):
    text = REST.replace("exact", "python: file://check.py") + "cases: [{input: a, expected: b}]\n"
    seen = set()
    for threshold in (1, 2, 1):
        (here / "check.py").write_text(f"def get_assert(output, context):\n    return len(output) > {threshold}\n")
        [scorer] = planned(text).scorers
        seen.add(scorer.digest)
    assert len(seen) == 2, "the same code again is the same scorer"


@pytest.mark.parametrize(
    ("scorer", "told"),
    [
        ({"javascript": "1 +"}, "`1 +` cannot be run: SyntaxError"),
        ({"python": "file://nowhere.py"}, "cannot be run: FileNotFoundError"),
        ({"python": "'yes'"}, "returned 'yes': return a boolean, a number or {pass, score}"),
        ({"python": "sys.exit(3)"}, "its process ended without an answer"),
    ],
)
def test_code_that_cannot_judge_is_no_failure_of_the_subject(
    scorer: dict[str, str], told: str, here: Path, bakeoff: Bakeoff
):
    suite = {"subjects": [{"scripted": "a"}], "cases": ["x"], "scorers": [scorer]}
    (here / "bakeoff.yaml").write_text(json.dumps(suite))
    done = bakeoff("eval", "--json", "--no-open")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (3, "incomplete"), done.stderr
    assert told in next(here.glob("results/runs/*/journal.jsonl")).read_text("utf-8")


def test_a_weight_counts_in_the_mean_and_a_threshold_makes_a_score_pass(here: Path, bakeoff: Bakeoff):
    scorers = [
        {"contains": ["a", "b"], "threshold": 0.5, "weight": 3},
        {"contains": "z", "name": "other"},
        {"contains": "y", "name": "shown", "weight": 0},
    ]
    suite = {"subjects": [{"scripted": "a"}], "cases": ["x"], "scorers": scorers, "threshold": 0.75}
    (here / "bakeoff.yaml").write_text(json.dumps(suite))
    done = bakeoff("eval", "--json", "--no-open")
    [subject] = json.loads(done.stdout)["summary"]["subjects"]
    assert (done.returncode, subject["score"]) == (0, 0.75)
