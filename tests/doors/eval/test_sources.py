"""Test where cases come from: files of five formats, data sets on disk, and functions of the user."""
# ruff: noqa: E501 - rows of tables

import datetime
import json
from pathlib import Path

import pytest

from bakeoff.doors.eval.find import read_suite
from bakeoff.doors.eval.plan import build_plan
from bakeoff.errors import UsageError
from bakeoff.plan import Plan

ROWS = [
    {"question": "France?", "answer": "Paris", "kind": "easy"},
    {"question": "Chad?", "answer": "N'Djamena", "kind": "hard"},
]
COLUMNS = "columns: {input: question, expected: answer}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(cases: str) -> Plan:
    Path("bakeoff.yaml").write_text(
        f"subjects: [oracle]\nprompts: '{{{{ kind }}}}: {{{{ input }}}}'\ncases:\n  - {cases}\nscorers: [exact]\n"
    )
    return build_plan(read_suite(None))


def write(name: str) -> None:
    path = Path(name)
    if path.suffix in (".csv", ".tsv"):
        lines = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]
        path.write_text("\n".join(("\t" if path.suffix == ".tsv" else ",").join(line) for line in lines))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)))
    elif path.suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(arrow.Table.from_pylist(ROWS), path)
    else:
        path.write_text(json.dumps(ROWS))  # JSON is YAML


@pytest.mark.parametrize("name", ["cases.csv", "cases.tsv", "cases.jsonl", "cases.json", "cases.yaml", "cases.parquet"])
def test_columns_become_input_expected_and_variables(name: str):
    write(name)
    plan = planned(f"{{file: {name}, {COLUMNS}}}")
    assert [(case.prompt, case.expected, case.variables) for case in plan.cases] == [
        ("easy: France?", "Paris", {"kind": "easy"}),
        ("hard: Chad?", "N'Djamena", {"kind": "hard"}),
    ]


def test_a_data_set_that_was_saved_to_disk_is_read_by_its_split(here: Path):
    arrow = pytest.importorskip("pyarrow")
    folder = here / "capitals" / "test"
    folder.mkdir(parents=True)
    table = arrow.Table.from_pylist(ROWS)
    with (
        arrow.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as file,
        arrow.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (here / "capitals" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    plan = planned(f"{{dataset: capitals, split: test, limit: 1, {COLUMNS}}}")
    assert [case.expected for case in plan.cases] == ["Paris"]
    with pytest.raises(
        UsageError, match=r"bakeoff.yaml:4: cases\[0\].dataset: capitals has several splits: write `split: …`"
    ):
        planned(f"{{dataset: capitals, {COLUMNS}}}")


def test_a_data_set_cannot_lead_out_of_its_folder(here: Path):
    (here / "evil").mkdir()
    (here / "evil" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../../etc/passwd"}]}))
    with pytest.raises(UsageError, match="is not the name of a file in the data set"):
        planned("{dataset: evil}")


def test_a_function_yields_cases(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(here))
    (here / "own_cases.py").write_text(
        "def cases():\n    for n in range(3):\n        yield {'input': n, 'kind': 'k', 'expected': str(n)}\n\ndef broken():\n    raise KeyError('x')\n"
    )
    assert [case.prompt for case in planned("{function: own_cases:cases}").cases] == ["k: 0", "k: 1", "k: 2"]
    with pytest.raises(
        UsageError, match=r"bakeoff.yaml:4: cases\[0\].function: cases: own_cases:broken raised KeyError"
    ):
        planned("{function: own_cases:broken}")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.csv", "input,expected\na,b,c\n", "a.csv:2: 3 values for 2 columns: put a value with `,` in double quotes"),
        ("a.csv", "input,input\na,b\n", "a.csv:1: the column 'input' is here twice"),
        ("a.csv", 'input\n"a\n', "a.csv:2: this is not CSV"),
        ("a.csv", "", "a.csv:1: the first line has to name the columns"),
        ("a.csv", "input,kind,expected,threshold\na,k,b,high\n", "a.csv:2: threshold: 'high': has to be a number"),
        ("a.jsonl", '{"input": "a", "kind": "k", "expected": "b"}\n{"input": \n', "a.jsonl:2: this is not JSON"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: a case is an object with names and values"),
        ("a.json", "{}", "a.json:1: a JSON file of cases is a list of objects"),
        ("a.yaml", "- input: a\n- 5\n", "a.yaml:2: a case is an object"),
        ("a.parquet", "no parquet", "a.parquet cannot be read as Parquet"),
        (
            "a.csv",
            "input,kind,expected\na,k,\n",
            "a.csv:2: has no `expected`, which exact would compare the answer with",
        ),
        ("a.jsonl", '{"input": "a", "kind": "k", "scorers": ["exakt"]}', "a.jsonl:1: scorers[0]: there is no scorer"),
        ("a.json", '[{"input": "a", "scorers": ["exakt"]}]', "a.json: item 1: scorers[0]: there is no scorer 'exakt'"),
        (
            "a.json",
            '[{"scorers": [{"contains": {"ignore_case": "so"}}]}]',
            "a.json: item 1: scorers[0].contains.ignore_case: 'so': has to be",
        ),
        ("a.jsonl", '{"input": "a", "tags": [""]}', "a.jsonl:1: tags[0]: '': must not be empty"),
        ("a.jsonl", '{"input": "a", "tags": 5}', "a.jsonl:1: tags: 5: has to be a list: write a list such as [smoke]"),
        ("a.jsonl", '{"input": "a", "expected": 1e999}', "a.jsonl:1: expected: inf: has to be a finite number"),
    ],
)
def test_what_is_wrong_with_a_file_of_cases_is_told_with_its_line(name: str, text: str, told: str, here: Path):
    (here / name).write_text(text)
    with pytest.raises(UsageError) as error:
        planned(f"file:{name}")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("name", "row", "told"),
    [
        (
            "a.jsonl",
            '{"input": "a", "kind": "k", "scorers": [{"function": "evil_rows:score"}]}',
            "a.jsonl:1: scorers[0].function: ",
        ),
        (
            "a.json",
            '[{"input": "a", "kind": "k", "scorers": {"function": {"target": "evil_rows:score"}}}]',
            "a.json: item 1: scorers[0].function: ",
        ),
        (
            "a.yaml",
            "- {input: a, kind: k, scorers: [exact, {semantic: {embed: 'evil_rows:score'}}]}",
            "a.yaml:1: scorers[1].semantic.embed: ",
        ),
        (
            "a.yaml",
            "- {input: a, kind: k, scorers: [{json: {match: 'evil_rows:score'}}]}",
            "a.yaml:1: scorers[0].json.match: ",
        ),
        (
            "a.yaml",
            "- {input: a, kind: k, scorers: [{tool_calls: {params: 'evil_rows:score'}}]}",
            "a.yaml:1: scorers[0].tool_calls.params: ",
        ),
        (
            "a.yaml",
            "- {input: a, kind: k, scorers: [{judge: {criteria: c, model: 'openai:gpt-5'}}]}",
            "a.yaml:1: scorers[0].judge.model: ",
        ),
    ],
)
def test_a_row_of_data_names_no_code_and_no_model(
    name: str, row: str, told: str, here: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(here))
    (here / "evil_rows.py").write_text("open('was_here', 'w').close()\n\ndef score(given):\n    return 1.0\n")
    (here / name).write_text(row)
    with pytest.raises(UsageError, match="write this scorer into bakeoff") as error:
        planned(f"file:{name}")
    assert told in str(error.value)
    assert not (here / "was_here").exists(), "checking a file of cases must not import what a row names"


def test_an_inline_case_may_name_a_scorer_of_the_users_own(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(here))
    (here / "inline_scorer.py").write_text("def score(given):\n    return 1.0\n")
    case = planned("{input: a, vars: {kind: k}, scorers: [{function: 'inline_scorer:score'}]}").cases[0]
    assert [spec.kind for spec in case.scorers or ()] == ["function"]


def test_a_cell_of_a_table_stays_a_text(here: Path):
    (here / "a.csv").write_text('input,kind,expected\n"=cmd|calc!A1",{{ 7*7 }},"__import__(\'os\')"\n')
    case = planned("file:a.csv").cases[0]
    assert (case.prompt, case.expected) == ("{{ 7*7 }}: =cmd|calc!A1", "__import__('os')")


def test_values_that_json_does_not_have_become_texts_or_null(here: Path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    row = {"input": "a", "kind": b"\xff\x00", "expected": "b", "when": datetime.date(2026, 1, 2), "what": float("nan")}
    parquet.write_table(arrow.Table.from_pylist([row]), here / "odd.parquet")
    case = planned("file:odd.parquet").cases[0]
    assert case.variables == {"kind": "_wA=", "when": "2026-01-02", "what": None}


def test_names_and_values_of_a_stranger_are_shown_and_change_nothing(here: Path):
    (here / "evil.jsonl").write_text(
        json.dumps({"name": "a\x1b[2J\n<script>", "input": "\x00", "kind": "k", "expected": "e"})
    )
    case = planned("file:evil.jsonl").cases[0]
    assert case.id == "a [2J <script>"
