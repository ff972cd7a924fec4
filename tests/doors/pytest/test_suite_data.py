"""The data of a suite: rows, their names, and what is wrong with them."""

import json

import pytest

from bakeoff.storage.run_folder import find_run

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]


DATA = {
    "a list": "data=[{'input': 'a'}, {'input': 'b'}]",
    "an iterable": "data=({'input': each} for each in 'ab')",
    "a function": "data=lambda: [{'input': 'a'}, {'input': 'b'}]",
    "an async function": "data=later",
    "an async generator": "data=one_by_one",
    "JSONL": "data='data/rows.jsonl'",
    "CSV": "data='data/rows.csv'",
    "YAML": "data='data/rows.yaml'",
    "JSON": "data='data/rows.json'",
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_rows_come_from(project: SmallProject, data: str) -> None:
    folder = project.path / "evals" / "data"
    folder.mkdir(parents=True)
    (folder / "rows.jsonl").write_text('{"input": "a"}\n\n{"input": "b"}\n')
    (folder / "rows.json").write_text('[{"input": "a"}, {"input": "b"}]')
    (folder / "rows.csv").write_text("input,expected\na,\nb,\n")
    (folder / "rows.yaml").write_text("- input: a\n- input: b\n")
    project.write(
        f"""
async def later():
    await asyncio.sleep(0)
    return [{{"input": "a"}}, {{"input": "b"}}]

async def one_by_one():
    for each in "ab":
        yield {{"input": each}}

@eval_suite({data}, scorers=[lambda given: given.output == given.input.upper() and given.expected is None])
def test_upper(case):
    return case.input.upper()
""",
        "evals/test_it.py",
    )
    assert project.run("evals").counts() == {"passed": 2}


def test_names_are_ids_and_others_are_readable_and_differ(project: SmallProject) -> None:
    project.write("""
data = [{"input": "What is 2+2?", "name": "sum of two"}, {"input": "  What/is: it? "}, {"input": "What is it"},
        {"input": {"a": [1]}}, {"input": ""}, {"input": "x" * 300}, {"input": "bell \\x07 Grüße"}]

@eval_suite(data=data, scorers=[lambda given: True])
def test_names(case):
    return "out"
""")
    seen = project.run("--collect-only", "-q")
    names = [line.removeprefix("test_it.py::test_names") for line in seen.text.splitlines() if "::" in line]
    assert names == [
        "[sum of two]",
        "[What-is-it]",
        "[What-is-it-2]",
        "[a-1]",
        "[case]",
        f"[{'x' * 50}]",
        "[bell-Grüße]",
    ]


def test_the_whole_row_reaches_task_and_scorers_by_name(project: SmallProject) -> None:
    project.write("""
def task(input, *, tone, **row):
    return f"{input} {tone} {sorted(row)}"

def narrow(input, tone="?"):
    return f"{input} {tone}"

def says(given):
    return given.output == given.wanted and given.tone == "kind" and given.row["tone"] == "kind"

row = {"input": "hi", "name": "n", "tone": "kind", "expected": 1}
everything = {**row, "wanted": "hi kind ['expected', 'name', 'wanted']"}
test_all = describe_eval("all", data=[everything], task=task, scorers=[says])
test_few = describe_eval("few", data=[{**row, "wanted": "hi kind"}], task=narrow, scorers=[says])

@eval_suite(data=[{**row, "wanted": "hi kind n 1 None"}], scorers=[says])
def test_case(case):
    assert case["tone"] == case.get("tone") == case.row["tone"]
    with pytest.raises(AttributeError, match="'color': its row has input, name"):
        case.color
    return f"{case.input} {case.tone} {case.name} {case.expected} {case.get('nothing')}"
""")
    assert project.run().counts() == {"passed": 3}


def test_bad_rows_are_told_by_their_place_and_stop_no_others(project: SmallProject) -> None:
    (project.path / "rows.jsonl").write_text('{"input": "a"}\n{"question": 1}\nnot json\n{"input": "b", "name": 7}\n')
    (project.path / "rows.csv").write_text("input,name\na,x\nb,y,z\nc,x\n")
    (project.path / "rows.yaml").write_text("- input: a\n- just text\n")
    project.write("""
scorers = [lambda given: True]
test_jsonl = describe_eval("jsonl", data="rows.jsonl", task=str, scorers=scorers)
test_csv = describe_eval("csv", data="rows.csv", task=str, scorers=scorers)
test_yaml = describe_eval("yaml", data="rows.yaml", task=str, scorers=scorers)
test_list = describe_eval("list", data=["text", {"input": 1, 2: 3}, {"input": "good"}], task=str, scorers=scorers)
""")
    seen = project.run()
    assert seen.counts() == {"passed": 4, "failed": 8}
    for problem in (
        "rows.jsonl:2: it has no 'input', only 'question'",
        "rows.jsonl:3: this is not JSON: expected ident at line 1 column 2",
        "rows.jsonl:4: the name 7 is not a text that can be shown",
        "rows.csv:3: 3 values for 2 columns: put a value with `,` in double quotes",
        "rows.csv:4: the name 'x' is already used by rows.csv:2: rename one",
        "rows.yaml:2: 'just text' is not a row: write it as {'input': …, 'expected': …}",
        "row 1: 'text' is not a row: write it as {'input': …, 'expected': …}",
        "row 2: the key 2 is not a text",
    ):
        assert f"could not be scored: {problem}" in seen.text


NO_ROWS = {
    "data=[]": "there is no data, so the eval would test nothing",
    "data='none.jsonl'": "none.jsonl cannot be read: No such file or directory",
    "data='rows.txt'": "rows.txt is of no kind that has cases: name a file of .csv, .tsv, .jsonl",
    "data=lambda: 7": "data is 7: give a list of rows, a function that returns one, or a file",
    "data={'input': 1}": "data is {'input': 1}: give a list of rows",
}


@pytest.mark.parametrize(("data", "problem"), NO_ROWS.items(), ids=NO_ROWS)
def test_data_that_gives_no_rows_fails_as_one_test(project: SmallProject, data: str, problem: str) -> None:
    project.write(f"test_none = describe_eval('none', {data}, task=str, scorers=[right])\ndef test_other(): pass\n")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    assert problem in seen.text
    assert "test_it.py::test_none[data]" in seen.text


def test_data_that_raises_keeps_its_traceback_and_stops_nothing_else(project: SmallProject) -> None:
    project.write("""
def broken():
    raise LookupError("no such table")

test_none = describe_eval("none", data=broken, task=str, scorers=[right])
def test_other(): pass
""")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    seen.result.stdout.fnmatch_lines(['>*raise LookupError("no such table")', "E*LookupError: no such table"])
    assert "rows.py" not in seen.text


def test_data_that_skips_skips_its_suite_alone(project: SmallProject) -> None:
    project.write("""
def data(): pytest.skip("no dataset here")
test_s = describe_eval("s", data=data, task=str, scorers=[right])
def test_other(): pass
""")
    seen = project.run("-rs")
    assert seen.counts() == {"passed": 1, "skipped": 1}
    assert "no dataset here" in seen.text


def test_skip_if_is_asked_before_data_is_loaded(project: SmallProject) -> None:
    project.write("""
def never():
    raise AssertionError("loaded")

@eval_suite(data=never, scorers=[right], skip_if=True)
def test_plain(case): ...

@eval_suite(data=never, scorers=[right], skip_if=lambda: "no key here")
def test_said(case): ...

@eval_suite(data=rows("a"), scorers=[right], skip_if=lambda: None)
def test_not(case):
    return "<a>"
""")
    seen = project.run("-rs")
    assert seen.counts() == {"passed": 1, "skipped": 2}
    assert "no key here" in seen.text
    assert len(seen.outcomes) == 1


def test_inputs_that_are_data_are_shown_as_json(project: SmallProject) -> None:
    project.write(
        "test_it = describe_eval('s', data=[{'input': {'a': 1}, 'expected': {2}}], task=str, scorers=[right])"
    )
    (outcome,) = project.run().outcomes
    assert json.loads(outcome.input) == {"a": 1}
    assert outcome.expected == [2]


def test_a_task_that_changes_its_input_changes_it_for_nobody_else(project: SmallProject) -> None:
    project.write("""
data = [{"input": [{"role": "user", "tags": ["new"]}], "name": "a", "expected": "[1, 1]"}]

def add(messages):
    messages[0]["tags"].append("seen")
    messages.append("said")
    return str([len(messages) - 1, len(messages[0]["tags"]) - 1])

def unchanged(given):
    return given.input == [{"role": "user", "tags": ["new"]}]

@pytest.mark.parametrize("model", ["m", "n"])
@eval_suite(data=data, scorers=[right, unchanged], rounds=2)
def test_function(case, model):
    return add(case.input)

@eval_suite(data=data, scorers=[right, unchanged], rounds=2)
async def test_async(case):
    return add(case["input"])

test_task = describe_eval("task", data=data, task=lambda input: add(input), scorers=[right, unchanged], rounds=2)
""")
    seen = project.run()
    assert seen.counts() == {"passed": 4}
    assert [each.score for each in seen.outcomes] == [1.0] * 4


COMMAND = """
from bakeoff.scorers import Command

check = "import answer, sys; sys.exit(answer.add(2, 2) != 4)"
row = {"expected": "", "hidden": {"check.py": check}, "answer_file": "answer.py"}
data = [{**row, "input": sign, "name": name} for name, sign in (("plus", "+"), ("minus", "-"))]
data += [
    {**row, "input": "+", "name": "outside", "hidden": {"../x": check}},
    {**row, "input": "+", "name": "answer outside", "answer_file": "../x"},
    {"input": "+", "name": "nothing to grade with"},
]

@eval_suite(data=data, scorers=[Command([sys.executable, "check.py"])])
def test_it(case):
    return f"def add(a, b):\\n    return a {case.input} b\\n"
"""


def test_a_command_grades_the_answer_with_the_hidden_files_of_its_row(project: SmallProject) -> None:
    project.write(f"import sys\n{COMMAND}")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 4}
    assert {each.case: each.score for each in seen.outcomes} == {
        "plus": 1.0,
        "minus": 0.0,
        "row-3": None,
        "row-4": None,
        "nothing to grade with": None,
    }
    kept = find_run(project.path / "results", "latest")
    assert len(list(kept.latest_records(kept.read_plan()))) == 5, "also those that could not be run"
    said = "'../x' does not stay inside the workspace: use a relative path without '..'"
    assert seen.outcome("row-3").problem == f"row 3: hidden: {said}"
    assert seen.outcome("row-4").problem == f"row 4: answer_file: {said}"
    assert "no hidden files to grade with" in str(seen.outcome("nothing to grade with").problem)


def test_a_skip_if_that_is_awaited_skips_by_what_it_says(project: SmallProject) -> None:
    project.write("""
async def no(): return False
async def yes(): return "no key here"

test_runs = describe_eval("runs", data=rows("a"), task=lambda input: "<a>", scorers=[right], skip_if=no)
test_not = describe_eval("not", data=rows("a"), task=lambda input: "<a>", scorers=[right], skip_if=yes)
""")
    seen = project.run("-rs")
    assert seen.counts() == {"passed": 1, "skipped": 1}
    assert "no key here" in seen.text
