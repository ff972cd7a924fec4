"""Models, controls and cheats through whole runs: what they may call, what they are graded by, what is kept."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors import FinishedRun, door_of
from bakeoff.doors.components.door import ComponentsDoor
from bakeoff.doors.components.plan import ComponentsRequest, build_plan
from bakeoff.doors.components.suites import find_suites
from bakeoff.engine.run import run
from bakeoff.grading.cases import graded_case
from bakeoff.grading.references import reference_key
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import Record, ToolCall, UnitTests
from bakeoff.report.summary import summarise
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder, run_folders

from .small_suites import ADDER, BUTTON, SHOUT, calling, scripted, write_suites

pytestmark = pytest.mark.full

RIGHT = ADDER["reference.py"]
HALF = ADDER["wrong.py"]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that no other test has filled."""
    monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def planned(folder: Path, **asked: Any) -> Plan:
    return build_plan(ComponentsRequest.model_validate(asked), find_suites(folder).suites)


def written_by(folder: RunFolder, plan: Plan, options: RunOptions) -> tuple[Path, ...]:
    """The files that the door writes at the end of a run."""
    summary = summarise(plan, folder.latest_records(plan))
    return door_of(plan).finish(FinishedRun(folder, plan, options, summary)).files


async def carried_out(plan: Plan, folder: Path, **options: Any) -> dict[tuple[str, str], Record]:
    chosen = RunOptions(**{"results": folder / "results", "jobs": 2, "retries": 0, **options})
    registry = door_of(plan).registry(plan, chosen)
    records = [record async for record in run(plan, chosen, registry=registry)]
    return {(record.case, record.subject): record for record in records}


def verification(record: Record) -> dict[str, Any]:
    (score,) = record.scores
    found = score.metadata["verification"]
    assert isinstance(found, dict), score.failure
    return found


def calls(record: Record) -> tuple[ToolCall, ...]:
    assert record.transcript is not None, record.failure
    return record.transcript.tool_calls


async def test_the_oracle_passes_nop_fails_and_every_cheat_fails(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER, shout=SHOUT)
    attacks = ("exit-early", "loop-forever", "patch-expect", "replace-tests", "forge-report")
    toml = (suites / "adder" / "suite.toml").read_text()
    (suites / "adder" / "suite.toml").write_text(toml + "seconds = 5\n")
    (suites / "shout" / "suite.toml").write_text((suites / "shout" / "suite.toml").read_text() + "seconds = 5\n")
    plan = planned(suites, models=["oracle", "nop", *(f"cheat:{attack}" for attack in attacks)])
    records = await carried_out(plan, tmp_path)
    told = {key: (record.verdict, record.value, record.failure) for key, record in records.items()}
    for suite in ("adder", "shout"):
        assert told[suite, "oracle"][:2] == ("pass", 1.0), told
        assert told[suite, "nop"][:2] == ("fail", 0.0), told
        assert [told[suite, f"cheat:{attack}"][0] for attack in attacks] == ["fail"] * len(attacks), told
    assert verification(records["adder", "nop"]) == {
        "testName": "adder",
        "passed": False,
        "numTests": 2,
        "numPassed": 0,
        "numFailed": 2,
        "duration": 0,
        "error": "no component was handed in: `ResultWrite` was not called",
        "failedTests": [],
    }


async def test_a_model_tests_its_work_and_the_first_result_counts(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    both = [{"name": "ResultWrite", "arguments": {"content": text}} for text in (RIGHT, HALF)]
    model = scripted(
        tmp_path / "model.json",
        [
            calling("TestComponent", HALF, step=0, think="Perhaps?"),
            {"call": [{"name": "ResultWrite", "arguments": {"code": RIGHT}}], "step": 1},
            {"call": both, "step": 2},
        ],
    )
    records = await carried_out(planned(suites, models=[model]), tmp_path)
    record = records["adder", model]
    assert record.verdict == "pass", record.failure
    tested, mistaken, first, late = calls(record)
    assert isinstance(tested.result, dict)
    assert (tested.result["success"], tested.result["passed"], tested.result["total"]) == (False, 1, 2)
    assert mistaken.error is not None
    assert "takes `content`" in mistaken.error
    assert (first.result, late.error) == ({"success": True}, "the attempt was over")


async def test_without_the_test_tool_it_is_not_offered(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    model = scripted(tmp_path / "model.json", [calling("TestComponent", RIGHT, step=0), calling("ResultWrite", HALF)])
    plan = planned(suites, models=[model], test_tool=False)
    record = (await carried_out(plan, tmp_path))["adder", model]
    assert "there is no such tool; there are ResultWrite" in str(calls(record)[0].error)
    assert (record.verdict, record.value) == ("fail", 0.5)


async def test_a_model_that_only_talks_has_handed_nothing_in(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    model = scripted(tmp_path / "model.json", [{"say": f"Here it is:\n```python\n{RIGHT}```"}])
    record = (await carried_out(planned(suites, models=[model]), tmp_path))["adder", model]
    assert verification(record)["numFailed"] == 2
    assert (record.verdict, record.value) == ("fail", 0.0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"content": "x" * 500_001}, "`content` has 500,001 characters; at most 500,000 are allowed"),
        ({"code": "x"}, "takes `content`, a text with the whole component; it was given code"),
    ],
)
async def test_a_result_that_was_refused_is_told_from_one_that_was_never_given(
    tmp_path: Path, arguments: Any, told: str
) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    model = scripted(tmp_path / "model.json", [{"call": [{"name": "ResultWrite", "arguments": arguments}]}])
    record = (await carried_out(planned(suites, models=[model], max_steps=1), tmp_path))["adder", model]
    error = verification(record)["error"]
    assert error.startswith("no component was handed in: `ResultWrite` was called and refused: ")
    assert told in error


@pytest.mark.parametrize(("priced", "cost"), [(True, 3e-3), (False, None)])
async def test_without_pricing_tokens_are_counted_and_nothing_is_said_of_money(
    tmp_path: Path, priced: bool, cost: float | None
) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    model = scripted(tmp_path / "model.json", [calling("ResultWrite", RIGHT, usage={"input": 1000})])
    plan = planned(suites, models=[model], pricing=priced)
    (spec,) = plan.subjects
    options = {**spec.options, "price": {"input": 3, "output": 15}}
    plan = plan.model_copy(update={"subjects": (spec.model_copy(update={"options": options}),)})
    record = (await carried_out(plan, tmp_path))["adder", model]
    assert (record.spent.input, record.spent.cost) == (1000, cost)
    (folder,) = run_folders(tmp_path / "results")
    (path, _page) = written_by(folder, plan, RunOptions(results=tmp_path / "results"))
    assert ("totalCost" in json.loads(path.read_text())["metadata"]) is priced


async def test_steps_end_where_they_were_said_to(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    model = scripted(tmp_path / "model.json", [calling("TestComponent", RIGHT)])
    record = (await carried_out(planned(suites, models=[model], max_steps=2), tmp_path))["adder", model]
    assert len(calls(record)) == 2
    assert record.verdict == "fail"


async def test_a_validator_that_objects_or_breaks_on_an_answer_alone_fails_the_component(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", shout=SHOUT)
    upper = scripted(tmp_path / "a.json", [calling("ResultWrite", "def shout(text):\n    return text.upper()\n")])
    broken = scripted(tmp_path / "b.json", [calling("ResultWrite", "# BROKEN\n")])
    records = await carried_out(planned(suites, models=[upper, broken]), tmp_path)
    objected = verification(records["shout", upper])
    assert (objected["numPassed"], objected["passed"], objected["validationFailed"]) == (1, False, True)
    assert objected["validation"] == {"valid": False, "errors": ["it uses upper"]}
    assert records["shout", upper].value == 0.0
    assert records["shout", broken].verdict == "fail"
    (reason,) = verification(records["shout", broken])["validation"]["errors"]
    assert "the validator breaks on this answer, and not on the reference" in reason
    assert "no idea" in reason


async def test_a_suite_whose_validator_is_broken_counts_for_nobody(tmp_path: Path) -> None:
    broken = {**SHOUT, "validator.py": "def validate(code):\n    raise RuntimeError('no idea')\n"}
    picky = {**SHOUT, "validator.py": SHOUT["validator.py"].replace("'BROKEN' in code", "not code")}
    suites = write_suites(tmp_path / "suites", broken=broken, picky=picky)
    records = await carried_out(planned(suites, models=["oracle", "nop"]), tmp_path)
    assert [records["broken", subject].verdict for subject in ("oracle", "nop")] == ["grader", "grader"]
    assert [records["picky", subject].verdict for subject in ("oracle", "nop")] == ["pass", "fail"]


async def test_a_suite_whose_reference_fails_some_tests_counts_test_by_test_and_is_named_unfit(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder={**ADDER, "reference.py": HALF})
    right = scripted(tmp_path / "a.json", [calling("ResultWrite", ADDER["reference.py"])])
    records = await carried_out(planned(suites, models=["oracle", "nop", right]), tmp_path)
    assert {subject: record.unit_tests for (_, subject), record in records.items()} == {
        "oracle": UnitTests(passed=1, total=2),
        "nop": UnitTests(passed=0, total=2),
        right: UnitTests(passed=2, total=2),
    }
    told = records["adder", "oracle"].scores[0]
    assert "the suite is unfit: its reference fails 1 of its tests" in told.reason
    assert told.metadata["tests_broken"] == ["test_small"]
    line = ComponentsDoor().line_of(records["adder", "oracle"])
    assert line == "✗ adder  oracle  1/2  unfit: the reference fails 1 of its tests"
    assert ComponentsDoor().line_of(records["adder", right]).startswith(f"✓ adder  {right}  2/2")


async def test_a_reference_that_passes_none_of_its_own_tests_is_the_suites_fault(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder={**ADDER, "reference.py": "def add(a, b): return None\n"})
    record = (await carried_out(planned(suites, models=["nop"]), tmp_path))["adder", "nop"]
    assert record.verdict == "grader"
    assert "its reference does not pass its own tests (failed:" in str(record.failure)
    assert "bakeoff verify --suite adder" in str(record.failure)


async def test_a_reference_is_run_once_and_again_only_when_its_suite_changes(tmp_path: Path, own_cache: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    kept = own_cache / "references"
    await carried_out(planned(suites, models=["nop"]), tmp_path)
    (file,) = kept.iterdir()
    names = json.loads(file.read_text())["names"]
    assert len(names) == 2
    file.write_text(json.dumps({"names": [*names, "test_adder > test_invented"], "skipped": []}))
    record = (await carried_out(planned(suites, models=["nop"]), tmp_path / "again"))["adder", "nop"]
    assert verification(record)["numTests"] == 3, "what was kept was not used"
    file.write_text("{")
    record = (await carried_out(planned(suites, models=["nop"]), tmp_path / "damaged"))["adder", "nop"]
    assert verification(record)["numTests"] == 2
    test = suites / "adder" / "test_adder.py"
    test.write_text(f"{test.read_text()}\n\ndef test_more():\n    assert add(2, 2) == 4\n")
    record = (await carried_out(planned(suites, models=["nop"]), tmp_path / "changed"))["adder", "nop"]
    assert verification(record)["numTests"] == 3
    assert len(list(kept.iterdir())) == 2


async def test_every_subject_and_round_has_a_result_file_and_its_page(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    plan = planned(suites, models=["oracle", "nop"], rounds=2)
    await carried_out(plan, tmp_path)
    options = RunOptions(results=tmp_path / "results")
    (folder,) = run_folders(options.results)
    written = written_by(folder, plan, options)
    ends = sorted(path.name.rpartition("-r")[2] for path in written)
    assert ends == ["1.html", "1.html", "1.json", "1.json", "2.html", "2.html", "2.json", "2.json"]
    assert written_by(folder, plan, options) == written, "the same run has the same files"
    oracle = json.loads(next(path for path in written if "oracle" in path.name).read_text())
    assert oracle["tests"][0]["resultWriteContent"] == RIGHT
    assert oracle["metadata"]["unitTestTotals"] == {"total": 2, "passed": 2, "failed": 0, "score": 100}
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}, "they hold what models wrote"


async def test_a_trial_that_is_tried_again_is_written_into_the_file_it_had(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    plan = planned(suites, models=["oracle", "nop"], rounds=2)
    await carried_out(plan, tmp_path)
    options = RunOptions(results=tmp_path / "results")
    (folder,) = run_folders(options.results)
    for place in (folder.path, folder.path.with_name("renamed")):
        folder = RunFolder(folder.path.rename(place))
        first = written_by(folder, plan, options)
        with JournalWriter(folder.journal_file, Redactor({})) as journal:
            for record in list(folder.latest_records(plan)):
                journal.append_record(record.model_copy(update={"started": record.started + 5000}))
        assert written_by(folder, plan, options) == first
    assert len(list(options.results.glob("result-*"))) == 16, "four files and pages for each name of the run"


async def test_a_svelte_component_is_tested_by_vitest(tmp_path: Path, needs_program: Callable[[str], str]) -> None:
    needs_program("node")
    suites = write_suites(tmp_path / "suites", button=BUTTON)
    old = BUTTON["Reference.svelte"].replace("onclick", "on:click")
    answers = {
        "wrong": BUTTON["wrong.svelte"],
        "torn": "<script>\nlet a = ;\n</script>",
        "leaves": "<script>\nprocess.exit(0);\n</script>",
        "old": old,
    }
    models = {
        name: scripted(tmp_path / f"{name}.json", [calling("ResultWrite", text)]) for name, text in answers.items()
    }
    records = await carried_out(planned(suites, models=["oracle", *models.values()]), tmp_path)
    assert records["button", "oracle"].verdict == "pass", records["button", "oracle"].failure
    found = {name: verification(records["button", model]) for name, model in models.items()}
    assert (found["wrong"]["numPassed"], found["wrong"]["numFailed"]) == (1, 1)
    assert [test["fullName"] for test in found["wrong"]["failedTests"]] == ["button > counts"]
    for name in ("torn", "leaves"):
        assert (found[name]["numPassed"], found[name]["numTests"]) == (0, 2), found[name]
    assert found["old"]["validationFailed"] is True
    assert all(records["button", model].verdict == "fail" for model in models.values())


async def test_what_goes_wrong_outside_of_tests_fails_a_svelte_component_and_leaves_its_counts(
    tmp_path: Path, needs_program: Callable[[str], str]
) -> None:
    needs_program("node")
    more = (
        'import { beforeAll } from "vitest";\n'
        'describe("loud", () => {\n'
        '  beforeAll(() => { if (globalThis.loud) throw new Error("too loud"); });\n'
        '  it("is heard", () => expect(1).toBe(1));\n'
        "});\n"
    )
    named = {**BUTTON, "suite.toml": 'test = "button.test.ts"\n', "button.test.ts": BUTTON["test.ts"] + more}
    del named["test.ts"]
    suites = write_suites(tmp_path / "suites", button=named)
    answers = {
        "loud": BUTTON["Reference.svelte"].replace(
            "<script>", "<script module>\nglobalThis.loud = 1;\n</script>\n<script>"
        ),
        "rejecting": BUTTON["Reference.svelte"].replace(
            "<script>", '<script>\nPromise.reject(new Error("left alone"));'
        ),
    }
    models = {
        name: scripted(tmp_path / f"{name}.json", [calling("ResultWrite", text)]) for name, text in answers.items()
    }
    records = await carried_out(planned(suites, models=["oracle", *models.values()]), tmp_path)
    assert records["button", "oracle"].verdict == "pass", records["button", "oracle"].failure
    found = {name: verification(records["button", model]) for name, model in models.items()}
    counts = {name: (one["passed"], one["numPassed"], one["numTests"]) for name, one in found.items()}
    assert counts == {"loud": (False, 2, 3), "rejecting": (False, 3, 3)}, found
    assert "left alone" in found["rejecting"]["error"]
    assert {records["button", model].verdict for model in models.values()} == {"fail"}
    assert {records["button", model].value for model in models.values()} == {2 / 3}


def test_a_reference_is_known_by_its_tests_and_by_what_runs_them(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    case = planned(suites, models=["nop"]).cases[0]
    assert case.grading is not None
    other_test = case.grading.model_copy(update={"tests": ("other.py",)})
    keys = {reference_key(graded_case(case), toolchain) for toolchain in ("", "node-1", "node-2")}
    keys |= {
        reference_key(graded_case(case.model_copy(update={"grading": other_test})), ""),
        reference_key(graded_case(case.model_copy(update={"reference": {"adder.py": ""}})), ""),
    }
    assert len(keys) == 5
    longer = case.grading.model_copy(update={"seconds": 99.0})
    assert reference_key(graded_case(case.model_copy(update={"grading": longer})), "node-1") in keys


async def test_two_runs_of_one_second_do_not_take_each_others_files(tmp_path: Path) -> None:
    suites = write_suites(tmp_path / "suites", adder=ADDER)
    plan = planned(suites, models=["nop"])
    await carried_out(plan, tmp_path)
    options = RunOptions(results=tmp_path / "results")
    (folder,) = run_folders(options.results)
    first, _ = written_by(folder, plan, options)
    twin = RunFolder(folder.path.rename(folder.path.with_name(f"{folder.name}-2")))
    second, _ = written_by(twin, plan, options)
    assert second.name == f"{first.stem}-2.json"
    assert first.exists()
