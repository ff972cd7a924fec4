"""The file of --eval-json, and merging several of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.cli.merge import MergeFlags, run_merge
from bakeoff.errors import BakeoffError
from bakeoff.record import ToolCall
from bakeoff.report.compare.comparison import compare_sources
from bakeoff.report.readers import Source, open_source
from bakeoff.report.suites.eval_file import EvalFileReader, case_ids, merge_files, parse_eval_file, read_eval_file
from bakeoff.report.suites.files import OutcomeRedactor
from bakeoff.report.suites.outcomes import EvalOutcome

from .evals import broken, file_bytes, numbers_of, outcome, priced, record, suite


def written(path: Path, outcomes: list[EvalOutcome], **more: Any) -> Path:
    path.write_bytes(file_bytes(outcomes, **more))
    return path


def test_a_file_gives_back_every_outcome_it_was_made_of(tmp_path: Path) -> None:
    call = ToolCall(name="search", arguments={"q": [1, None, "x"]}, result={"a": 1}, error="late", id="1")
    rounds = (record(0.5, calls=(call,)), record(1.0, round_=1))
    outcomes = [
        *suite([1.0, 0.0]),
        outcome(0.75, "t.py::test_r[x]", records=rounds, gate="pass@k", expected={"a": [1]}),
        outcome(None, "t.py::test_b[y]", records=(broken(),)),
        priced(0.4),
    ]
    assert read_eval_file(written(tmp_path / "a.json", outcomes)).outcomes == [
        *suite([1.0, 0.0]),
        outcomes[4],
        *outcomes[2:4],
    ]


def test_the_shape_is_the_documented_one(tmp_path: Path) -> None:
    told = json.loads(written(tmp_path / "a.json", [*suite([1.0, 0.0]), priced(0.4)]).read_text())
    assert list(told)[:2] == ["format", "version"]
    assert (told["format"], told["version"], told["complete"]) == ("bakeoff-evals", 1, True)
    assert {name: count for name, count in told["ledger"].items() if count} == {
        "planned": 3,
        "passed": 1,
        "failed": 2,
        "ended": True,
    }
    [found] = told["suites"]
    assert (found["suite"], found["file"], found["numbers"]["cases"]) == ("test_capitals", "tests/test_x.py", 3)
    assert found["numbers"]["interval"].keys() == {"low", "high", "method"}
    case = found["cases"][1]
    assert (case["nodeid"], case["score"], case["passed"]) == ("tests/test_x.py::test_capitals[case-1]", 0.0, False)
    [first] = case["rounds"]
    assert (first["score"], first["verdict"]) == (0.0, "fail")
    assert first["record"]["scores"] == [{"name": "Contains", "value": 0.0, "reason": "it says something else"}]
    assert found["cases"][2]["usage"]["cost"] == 0.0012


def test_numbers_that_someone_changed_decide_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", suite([0.0, 0.0]))
    told = json.loads(path.read_text())
    told["numbers"]["score"] = told["suites"][0]["numbers"]["score"] = 1.0
    path.write_text(json.dumps(told))
    assert numbers_of(merge_files([path]).outcomes).score == 0.0


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"", "EOF"),
        (b'{"format":"bakeoff-evals","version":1,', "EOF"),
        (b"[]", "object"),
        (b'{"format":"other","version":1}', "format"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path: Path, damage: bytes, said: str) -> None:
    path = tmp_path / "damaged.json"
    path.write_bytes(damage)
    with pytest.raises(BakeoffError, match=r"damaged\.json is not a valid --eval-json file") as caught:
        merge_files([path])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def changed(data: bytes, **fields: Any) -> bytes:
    told = json.loads(data)
    for name, value in fields.items():
        place = told
        *parents, last = name.split("__")
        for parent in parents:
            place = place[int(parent) if parent.isdigit() else parent]
        place[last] = value
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "has format version 2, this bakeoff reads version 1"),
        ({"suites__0__cases__0__score": 7}, r"suites\[0\].cases\[0\].score"),
        ({"suites__0__cases__0__rounds__0__record__spent": {"input": 10**40}}, "too large to be a measurement"),
        ({"suites__0__cases__0__rounds__0__verdict": "splendid"}, "verdict"),
        ({"suites__0__cases__0__rounds__0__verdict": "grader"}, "the verdict is grader, and that of its record pass"),
        ({"suites__0__cases__0__passed": "yes"}, r"suites\[0\].cases\[0\].passed: .*true or false"),
        ({"complete": None}, "complete: .*true or false"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_values_that_cannot_be_are_refused_where_they_stand(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BakeoffError, match=said):
        parse_eval_file(changed(file_bytes(suite([1.0])), **change), "a.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BakeoffError, match=r"nowhere\.json cannot be read: No such file"):
        merge_files([tmp_path / "nowhere.json"])


def test_shards_make_one_suite_with_numbers_of_all_cases(tmp_path: Path) -> None:
    cases = suite([1.0, 0.0, 1.0, 1.0])
    paths = [written(tmp_path / "a.json", cases[:1]), written(tmp_path / "b.json", cases[1:], complete=False)]
    paths.append(written(tmp_path / "c.json", []))
    merged = merge_files(paths)
    assert (merged.outcomes, merged.files, merged.shards, merged.complete) == (cases, 3, None, False)
    assert merged.notes == (
        f"{paths[1]}: this run was stopped before its end, or not all of it could be read",
        f"{paths[2]}: this run has no evals",
    )
    assert numbers_of(merged.outcomes).score == 0.75
    output = str(tmp_path / "all.json")
    with pytest.raises(BakeoffError, match="--shards 4: 3 shards are here: name the file of every shard, once"):
        run_merge(files=paths, wanted=MergeFlags(output=output, shards=4))
    assert run_merge(files=paths, wanted=MergeFlags(output=output, shards=3)) == 3, "one was stopped"


def test_the_same_result_twice_counts_once_and_two_results_are_refused(tmp_path: Path) -> None:
    one = written(tmp_path / "a.json", suite([1.0, 0.0]))
    same = written(tmp_path / "b.json", suite([1.0]))
    other = written(tmp_path / "c.json", suite([0.3]))
    merged = merge_files([one, same])
    assert len(merged.outcomes) == 2
    assert merged.notes[0].startswith("1 test is in more than one file")
    with pytest.raises(
        BakeoffError, match=r"test_capitals\[case-0\] has one result in .*a\.json and another in .*c\.json"
    ):
        merge_files([one, other])


def test_two_suites_of_one_name_in_two_files_stay_apart() -> None:
    file = parse_eval_file(file_bytes([*suite([1.0]), *suite([0.0], file="tests/test_y.py")]), "x")
    assert [(each.file, each.numbers.score) for each in file.suites] == [
        ("tests/test_x.py", 1.0),
        ("tests/test_y.py", 0.0),
    ]


def test_several_evals_of_one_test_have_names_of_their_own() -> None:
    evals = [outcome(1.0, "t.py::test_one"), outcome(0.0, "t.py::test_one"), outcome(0.0, "t.py::test_one #2")]
    assert case_ids([*evals, evals[0]]) == [
        "t.py::test_one",
        "t.py::test_one #2",
        "t.py::test_one #2 #2",
        "t.py::test_one #3",
    ]


def test_secrets_and_half_characters_stay_out_of_files() -> None:
    hostile = outcome(0.0, record={"output": "my key is sk-0123456789abcdef"}, input="\ud800 and \udfff")
    kept = OutcomeRedactor({"OPENAI_API_KEY": "sk-0123456789abcdef"})(hostile)
    data = file_bytes([kept])
    assert b"0123456789abcdef" not in data
    assert b"OPENAI_API_KEY" in data
    assert parse_eval_file(data, "x").outcomes == [kept]


def test_other_commands_read_the_file(tmp_path: Path) -> None:
    before = written(tmp_path / "before.json", suite([1.0] * 20))
    after = written(tmp_path / "after.json", suite([0.0] * 10 + [1.0] * 10))
    readers = (EvalFileReader(),)
    sources = [open_source(path, readers) for path in (before, after)]
    report = compare_sources(sources[0], sources[1])
    assert report.exit_code == 1
    assert report.pairs[0].comparison.difference == -0.5
    assert len(list(sources[1].records())) == 20
    assert not EvalFileReader().recognises(tmp_path)


def test_another_json_file_is_not_taken_for_one_of_ours(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x", "format": "bakeoff-evals"}')
    assert not EvalFileReader().recognises(tmp_path / "package.json")


def test_a_plan_of_evals_that_differ_in_rounds_has_the_most(tmp_path: Path) -> None:
    rounds = tuple(record(1.0, round_=place) for place in range(3))
    path = written(tmp_path / "a.json", [outcome(1.0), outcome(1.0, "t.py::test_r[x]", records=rounds)])
    source = Source(path, EvalFileReader())
    assert source.plan.rounds == 3
    assert [each.round for each in source.records()] == [0, 0, 1, 2]
