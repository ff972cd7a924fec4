"""Exports are read back by the tools they are made for."""

import csv
import io
import json
import math
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import UsageError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Reasoning, Record, Score, Step, Text, ToolCall, Transcript
from bakeoff.report.exports.inspect_log import sample_id, write_inspect_log
from bakeoff.report.exports.tables import (
    MAX_CELL_LENGTH,
    fields_of,
    json_cell,
    rows_of,
    safe_cell,
    unique_names,
    write_csv,
    write_parquet,
)
from bakeoff.report.run_records import RunRecords

from ..runs import lost, plan_of, record_of


def mixed(plan: Plan) -> Iterator[Record]:
    """Passes, failures, a timeout, and one of everything that is lost; out of order."""
    for trial in reversed(list(plan.trials())):
        kind = {3: "infra", 4: "grader", 5: "budget", 6: "timeout"}.get(trial.index)
        yield lost(trial, kind) if kind else record_of(trial, float(trial.index % 2))


def csv_of(plan: Plan, records: Iterator[Record]) -> str:
    file = io.StringIO()
    with RunRecords(plan, records) as shelf:
        write_csv(fields_of(plan), rows_of("run", shelf), file)
    return file.getvalue()


def test_pandas_reads_the_csv_and_finds_the_same_numbers() -> None:
    plan = plan_of(5, ["a", "b"], rounds=2)
    table = pandas.read_csv(io.StringIO(csv_of(plan, mixed(plan))))
    assert len(table) == 20
    assert list(table["subject"].unique()) == ["a", "b"], "in the plan's order"
    assert table["verdict"].value_counts().to_dict() == {
        "pass": 8,
        "fail": 8,
        "infra": 1,
        "grader": 1,
        "budget": 1,
        "timeout": 1,
    }
    assert table.loc[table["verdict"] == "timeout", "score"].tolist() == [0.0], "a timeout is the subject's"
    assert table.loc[table["verdict"] == "infra", "score"].isna().all(), "what was lost has no score"
    assert table["cost_usd"].sum() == pytest.approx(0.2)
    assert table["score.exact"].max() == 1.0


def test_pandas_reads_the_parquet_and_finds_the_same_numbers(tmp_path: Path) -> None:
    plan = plan_of(5, ["a", "b"], rounds=2)
    with RunRecords(plan, mixed(plan)) as shelf:
        write_parquet(fields_of(plan), rows_of("run", shelf), tmp_path / "x.parquet")
    table = pandas.read_parquet(tmp_path / "x.parquet")
    other = pandas.read_csv(io.StringIO(csv_of(plan, mixed(plan))))
    assert list(table.columns) == list(other.columns)
    assert table["score"].fillna(-1).tolist() == other["score"].fillna(-1).tolist()
    assert str(table["started"].dtype).startswith("datetime64[ms, UTC")
    assert table["output"][0] == "answer 0.0"


def test_parquet_without_pyarrow_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'bakeoff\[parquet\]'"):
        write_parquet((), iter(()), tmp_path / "x.parquet")


def test_a_number_too_long_for_parquet_is_a_sentence(tmp_path: Path) -> None:
    plan = plan_of(1, ["s"])
    record = record_of(plan.trial(0), tries=2**70)
    with RunRecords(plan, [record]) as shelf, pytest.raises(UsageError, match="tries does not fit into the 64 bits"):
        write_parquet(fields_of(plan), rows_of("run", shelf), tmp_path / "x.parquet")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "=cmd|' /C calc'!A0", "＝1"])
def test_a_formula_is_shown_and_not_carried_out(text: str) -> None:
    assert safe_cell(text).startswith("'")


@given(st.text(max_size=50))
def test_no_cell_begins_like_a_formula_or_breaks_its_line(text: str) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow([safe_cell(text), "end"])
    [row] = csv.reader(io.StringIO(file.getvalue()))
    assert file.getvalue().count("\n") == 1
    assert len(row) == 2
    assert not row[0].lstrip().startswith(("=", "+", "-", "@"))


@given(st.text(max_size=50), st.text(max_size=50))
def test_two_texts_never_become_one_cell(one: str, other: str) -> None:
    assert (safe_cell(one) == safe_cell(other)) == (one == other)


def test_a_line_break_and_the_letters_of_its_escape_are_told_apart() -> None:
    assert safe_cell("a\nb") == "a\\nb"
    assert safe_cell("a\\nb") == "a\\\\nb"
    assert safe_cell("'=1") != safe_cell("=1")


def test_spaces_and_joiners_of_other_scripts_are_left_alone() -> None:
    family = "\U0001f469\u200d\U0001f467"
    assert safe_cell(f"日本\u3000語 {family}") == f"日本\u3000語 {family}"
    assert safe_cell("\u3000=1").startswith("'")
    assert safe_cell("\u200d=1").startswith("'")
    assert safe_cell("\u202egnp") == "\\u202egnp"


def test_no_formula_begins_where_cells_are_parted_at_semicolons() -> None:
    assert safe_cell("a;=1+1;b; c") == "a\\x3b=1+1;b; c"
    assert ";" not in json_cell(json.dumps(["a;=1+1;"]))
    assert json.loads(json_cell(json.dumps(["a;=1+1;"]))) == ["a;=1+1;"]


def test_json_in_a_cell_is_json_however_long_it_is() -> None:
    plan = plan_of(1, ["s"])
    scores = tuple(Score(name=f"n{number}", value=0.0, reason="\n" + "x" * 5000) for number in range(20))
    table = pandas.read_csv(io.StringIO(csv_of(plan, iter([record_of(plan.trial(0), scores=scores)]))))
    [cell] = table["scores"]
    assert len(cell) <= MAX_CELL_LENGTH
    told = json.loads(cell)
    assert [(score["name"], score["value"]) for score in told] == [(f"n{number}", 0.0) for number in range(20)]
    assert told[0]["reason"].startswith("\nxxx")
    assert json.loads(json_cell(json.dumps({"k" * 50_000: 1}))) == "50007 characters, too many for a cell"


def test_two_scorers_of_one_name_have_a_column_each(tmp_path: Path) -> None:
    plan = plan_of(1, ["s"]).model_copy(update={"scorers": (ScorerSpec(kind="exact"), ScorerSpec(kind="exact"))})
    scores = (Score(name="exact", value=1.0), Score(name="exact", value=0.0))
    record = record_of(plan.trial(0), scores=scores)
    table = pandas.read_csv(io.StringIO(csv_of(plan, iter([record]))))
    assert (table["score.exact"][0], table["score.exact 2"][0]) == (1.0, 0.0)
    with RunRecords(plan, [record]) as shelf:
        write_parquet(fields_of(plan), rows_of("run", shelf), tmp_path / "x.parquet")
    assert pandas.read_parquet(tmp_path / "x.parquet")["score.exact 2"][0] == 0.0


def test_names_that_are_numbered_stay_clear_of_those_that_were_there() -> None:
    assert unique_names(["a", "a", "a 2", "b", "a"]) == ["a", "a 3", "a 2", "b", "a 4"]


def test_scorers_and_cases_with_formulas_for_names_are_safe_too() -> None:
    plan = plan_of(0, ["=evil()"], case_list=(Case(id="=HYPERLINK(1)", prompt="?"),))
    rows = list(csv.reader(io.StringIO(csv_of(plan, iter([record_of(plan.trial(0), 0.0, output="=1+1")])))))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "@"))]


def inspect_plan() -> Plan:
    return Plan(
        name="suite",
        cases=(
            Case(id="plain", prompt="What is 17 + 25?", expected="42", tags={"kind": "sum"}),
            Case(id="group/odd", prompt="?", expected={"a": 1}),
            Case(id="../../etc/passwd", prompt="?"),
        ),
        subjects=(SubjectSpec(kind="model", name="m", options={"model": "openai/gpt-5", "system": "Be brief."}),),
        scorers=plan_of(1, ["s"]).scorers,
        rounds=2,
    )


def inspect_records(plan: Plan) -> Iterator[Record]:
    call = ToolCall(name="add", arguments={"a": 17, "b": 25}, result={"sum": 42}, id="c1")
    broken = ToolCall(name="add", arguments="17 25", error="no JSON")
    steps = (
        Step(parts=(Reasoning(text="hm"), Text(text="let me see"), call, broken), finish_reason="tool_call"),
        Step(parts=(Text(text="42"),), finish_reason="stop"),
    )
    yield record_of(plan.trial(0), 1.0, transcript=Transcript(output="42", steps=steps, metadata={"replayed": True}))
    yield lost(plan.trial(1), "infra")
    yield lost(plan.trial(2), "timeout")
    failure = Failure(kind="subject", type="Refused", message="it would not")
    yield record_of(plan.trial(3), None, scores=(), attempt=Phase(seconds=1.0, failure=failure))
    yield record_of(plan.trial(4), 0.25)


def test_inspect_reads_the_log_and_its_mean_is_ours_over_what_counts(tmp_path: Path) -> None:
    log_module = pytest.importorskip("inspect_ai.log", reason="pip install 'bakeoff[bench]'")
    plan = inspect_plan()
    path = tmp_path / "m.eval"
    with RunRecords(plan, inspect_records(plan)) as shelf:
        write_inspect_log("the-run", plan, plan.subjects[0], shelf, path)
    log = log_module.read_eval_log(str(path))
    assert log.status == "cancelled", "one was lost and one not run"
    assert log.eval.model == "openai/gpt-5"
    assert log.eval.config.epochs == 2
    assert log.eval.metadata["bakeoff_run"] == "the-run"
    assert (log.results.total_samples, log.results.completed_samples) == (6, 4)
    samples = {(sample.id, sample.epoch): sample for sample in log.samples}
    assert len(samples) == 5
    first = samples[("plain", 1)]
    assert first.input == "What is 17 + 25?"
    assert first.target == "42"
    assert [message.role for message in first.messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert first.messages[2].tool_calls[0].arguments == {"a": 17, "b": 25}
    assert first.messages[4].error.message == "no JSON"
    assert first.output.completion == "42"
    assert first.scores["exact"].value == 1.0
    usage = first.model_usage["openai/gpt-5"]
    assert (usage.input_tokens, usage.input_tokens_cache_read, usage.output_tokens) == (60, 40, 20)
    infra = samples[("group/odd", 1)]
    assert "infra of group/odd" in infra.error.message
    assert not infra.scores
    assert samples[("..%2F..%2Fetc%2Fpasswd", 1)].scores["bakeoff"].value == 0.0
    assert samples[("..%2F..%2Fetc%2Fpasswd", 1)].limit.type == "time"
    assert samples[("plain", 2)].error is None, "what the subject failed in counts"
    means: dict[str, list[float]] = {}
    for sample in log.samples:
        if sample.scores:
            means.setdefault(sample.id, []).append(sample.scores["bakeoff"].value)
    by_case = [sum(values) / len(values) for values in means.values()]
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(sum(by_case) / len(by_case))
    summaries = log_module.read_eval_log_sample_summaries(str(path))
    assert {(summary.id, summary.epoch) for summary in summaries} == set(samples)
    assert log_module.read_eval_log_sample(str(path), "plain", 1).id == "plain"


def test_no_member_of_an_inspect_log_leaves_its_folder_when_unpacked(tmp_path: Path) -> None:
    plan = inspect_plan()
    with RunRecords(plan, inspect_records(plan)) as shelf:
        write_inspect_log("run", plan, plan.subjects[0], shelf, tmp_path / "m.eval")
    with zipfile.ZipFile(tmp_path / "m.eval") as log:
        assert not [name for name in log.namelist() if ".." in name.split("/") or name.startswith("/")]
        header = json.loads(log.read("header.json"))
    assert "hidden" not in json.dumps(header)
    assert not math.isnan(header["results"]["scores"][0]["metrics"]["mean"]["value"])


IDS = [
    "a/b",
    "..",
    "x:y",
    "/abs",
    "con\\x",
    "..\\..\\x",
    "a/../../z",
    "%2e%2e",
    "..%2Fx",
    "../x",
    "100% sure",
    "./a",
    "a//b",
]


def test_inspect_opens_every_sample_by_the_id_that_it_lists(tmp_path: Path) -> None:
    log_module = pytest.importorskip("inspect_ai.log", reason="pip install 'bakeoff[bench]'")
    plan = plan_of(0, ["s"], case_list=tuple(Case(id=name, prompt="?") for name in IDS))
    path = tmp_path / "s.eval"
    with RunRecords(plan, [record_of(trial) for trial in plan.trials()]) as shelf:
        write_inspect_log("run", plan, plan.subjects[0], shelf, path)
    listed = [summary.id for summary in log_module.read_eval_log_sample_summaries(str(path))]
    samples = [log_module.read_eval_log_sample(str(path), id=name, epoch=1) for name in listed]
    assert [sample.metadata.get("bakeoff_case", sample.id) for sample in samples] == IDS
    assert {"a/b", "..", "x:y", "100% sure"} <= set(listed), "what is safe stays as it is"
    with zipfile.ZipFile(path) as log:
        folders = [part for name in log.namelist() for part in name.replace("\\", "/").split("/")[:-1]]
    assert not {"", ".", ".."} & set(folders)


@given(st.text(alphabet="./\\%2Fea", max_size=12), st.text(alphabet="./\\%2Fea", max_size=12))
def test_two_cases_never_become_one_sample(one: str, other: str) -> None:
    assert (sample_id(one) == sample_id(other)) == (one == other)


def test_a_trial_lost_to_a_silent_grader_has_an_error_in_inspect_and_no_score(tmp_path: Path) -> None:
    log_module = pytest.importorskip("inspect_ai.log", reason="pip install 'bakeoff[bench]'")
    plan = plan_of(1, ["s"])
    with RunRecords(plan, [record_of(plan.trial(0), None)]) as shelf:
        write_inspect_log("run", plan, plan.subjects[0], shelf, tmp_path / "s.eval")
    [sample] = log_module.read_eval_log(str(tmp_path / "s.eval")).samples
    assert sample.error.message == "grader: no scorer returned a number"
    assert not sample.scores


def test_no_score_of_an_inspect_sample_takes_the_place_of_another(tmp_path: Path) -> None:
    log_module = pytest.importorskip("inspect_ai.log", reason="pip install 'bakeoff[bench]'")
    plan = plan_of(1, ["s"])
    scores = tuple(Score(name=name, value=value) for name, value in (("bakeoff", 0.25), ("x", 1.0), ("x", 0.5)))
    with RunRecords(plan, [record_of(plan.trial(0), scores=scores)]) as shelf:
        write_inspect_log("run", plan, plan.subjects[0], shelf, tmp_path / "s.eval")
    [sample] = log_module.read_eval_log(str(tmp_path / "s.eval")).samples
    found = {name: score.value for name, score in sample.scores.items()}
    assert found == {"bakeoff": pytest.approx(1.75 / 3), "bakeoff 2": 0.25, "x": 1.0, "x 2": 0.5}


@pytest.mark.unwatched
def test_an_export_needs_no_more_memory_for_a_longer_run() -> None:
    peaks = []
    for rounds in (5, 25):
        plan = plan_of(10, ["s"], rounds=rounds)
        records = (record_of(trial, 1.0, output=f"{trial.index} " + "x" * 20_000) for trial in plan.trials())
        tracemalloc.start()
        with RunRecords(plan, records) as shelf, Path("/dev/null").open("w") as nowhere:
            write_csv(fields_of(plan), rows_of("run", shelf), nowhere)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1_000_000, "four megabytes more of outputs, and not one of memory"
