"""Agents, controls and cheats through whole runs: what they see, what is taken across, what they are graded by."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors import door_of
from bakeoff.doors.exercises.attacks import ATTACKS, in_turn
from bakeoff.doors.exercises.cases import Grading
from bakeoff.doors.exercises.exercises import find_exercises
from bakeoff.doors.exercises.plan import build_plan
from bakeoff.doors.exercises.request import ExercisesRequest
from bakeoff.doors.exercises.tampering import meddling_of
from bakeoff.doors.exercises.tracks import is_protected_name
from bakeoff.engine.run import run, sandbox_of
from bakeoff.errors import PlanError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import HIDDEN, Plan
from bakeoff.record import Record, Verdict
from bakeoff.sandbox.process import ProcessSandbox
from bakeoff.subjects.command_agent import AgentRun, agent_run_in
from bakeoff.subjects.folder_changes import patch_of
from bakeoff.toolchains.outcome import TestRun

from ...models.loopback import Act, Loopback
from .small_tracks import DOUBLE, PAIR, RIGHT_DOUBLE, Files, agent_file, bytes_of, overwrite, write_track

SOLVE = overwrite("double.py", RIGHT_DOUBLE)
CANARY = "sk-canary-0a1b2c3d4e5f6071"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def track(tmp_path: Path) -> Path:
    return write_track(tmp_path / "track", double=DOUBLE, pair=PAIR)


@pytest.fixture
def provider() -> Iterator[Loopback]:
    loopback = Loopback()
    loopback.start()
    yield loopback
    loopback.stop()


def planned(root: Path, *agents: str, **asked: Any) -> Plan:
    request = ExercisesRequest.model_validate({"exercises": root, "agents": agents, "timeout": 20.0, **asked})
    return build_plan(request, find_exercises(root, request.wanted).exercises)


async def carried_out(plan: Plan, folder: Path, **options: Any) -> dict[tuple[str, str], Record]:
    chosen = RunOptions(**{"results": folder / "results", "jobs": 2, "retries": 0, **options})
    registry = door_of(plan).registry(plan, chosen)
    records = [record async for record in run(plan, chosen, registry=registry)]
    return {(record.case, record.subject): record for record in records}


async def tried(root: Path, script: str, **asked: Any) -> Record:
    """What becomes of one script in the exercise `double`."""
    about = {key: asked.pop(key) for key in ("env", "require", "home", "version") if key in asked}
    options = asked.pop("options", {})
    file = agent_file(root.parent, "scripted-agent", script, **about)
    plan = planned(root, "scripted-agent", agent_files=[file], wanted=["double"], **asked)
    [record] = (await carried_out(plan, root.parent, **options)).values()
    return record


def outcome(record: Record) -> dict[str, Any]:
    (score,) = record.scores
    found = score.metadata.get("exercise")
    assert isinstance(found, dict), score.failure
    return found


def said(record: Record) -> str:
    assert record.transcript is not None, record.failure
    return str(record.transcript.output)


async def test_the_oracle_solves_everything_and_nop_nothing(track: Path, tmp_path: Path) -> None:
    before = bytes_of(track)
    records = await carried_out(planned(track, "oracle", "nop"), tmp_path)
    assert {key: record.verdict for key, record in records.items()} == {
        ("double", "oracle"): Verdict.PASS,
        ("pair", "oracle"): Verdict.PASS,
        ("double", "nop"): Verdict.FAIL,
        ("pair", "nop"): Verdict.FAIL,
    }
    assert outcome(records["double", "nop"])["failureClass"] == "no change"
    assert bytes_of(track) == before


async def test_an_agent_that_solves_an_exercise_passes_and_its_work_is_kept(track: Path) -> None:
    before = bytes_of(track)
    record = await tried(track, f"{SOLVE}echo done", version={"command": ["sh", "-c", "echo 7.1"]})
    assert record.verdict is Verdict.PASS, record.scores
    assert outcome(record)["overallSuccess"] is True
    assert record.transcript is not None
    assert record.transcript.metadata["metered"] is False
    about = record.transcript.metadata["agent"]
    assert isinstance(about, dict)
    assert about["version"] == "7.1"
    assert about["touched"] == ["double.py"]
    told = str(record.transcript.steps)
    assert "+    return number + number" in told
    assert "done" in told
    assert bytes_of(track) == before


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("true", "no change"),
        (overwrite("double.py", "def double(number):\n    return 0\n"), "partial"),
        (overwrite("double.py", "def double(number):\n    return 7\n"), "wrong"),
        (overwrite("double.py", "syntax error"), "wrong"),
        (f"{overwrite('double_test.py', 'def test_one(): pass')}", "cheated"),
    ],
)
async def test_a_failure_is_of_a_class(track: Path, script: str, kind: str) -> None:
    record = await tried(track, script)
    assert record.verdict is Verdict.FAIL
    assert outcome(record)["failureClass"] == kind
    assert outcome(record)["agentSuccess"] is True


HONEST = {
    "conftest.py": "import sys\nsys.path.insert(0, '.')\n",
    "double_test.py": DOUBLE["double_test.py"] + "\n\ndef test_more():\n    assert double(2) == 4\n",
    "junit.xml": '<testsuite tests="2" failures="2"/>\n',
    "package.json": '{"scripts": {"test": "echo no test && exit 1"}, "dependencies": {"left-pad": "1"}}\n',
    "pytest.ini": "[pytest]\npython_files = *_test.py\n",
    "test_mine.py": "def test_mine():\n    pass\n",
    "venv/site-packages/some.pth": "../lib\n",
}


async def test_an_honest_failure_is_no_cheating_whatever_else_was_touched(track: Path) -> None:
    script = overwrite("double.py", "def double(number):\n    return 7\n")
    script += "mkdir -p .git node_modules venv/site-packages; echo notes > notes.md\n"
    record = await tried(track, script + "".join(overwrite(name, text) for name, text in HONEST.items()))
    found = outcome(record)
    assert (found["failureClass"], found["tampering"]) == ("wrong", [])
    assert found["touched"] == list(HONEST)
    (score,) = record.scores
    assert score.reason.startswith("wrong: 0 of 2 tests passed")
    assert score.reason.endswith(
        "it also touched conftest.py, double_test.py, junit.xml, package.json, pytest.ini and 2 more"
    )


ONE, TWO = "('one', () => {\n})\n", "('two', () => {\n})\n"
TESTS = {"a.test.ts": f"it{ONE}xit{TWO}", "package.json": '{"scripts": {"test": "jest"}}\n'}


@pytest.mark.parametrize(
    ("name", "after", "told"),
    [
        ("a.test.ts", f"it{ONE}it{TWO}".replace("'", '"').replace("})", "});"), None),
        ("a.test.ts", f"it{ONE}xit{TWO}it('three', () => {{\n}})\n", None),
        ("a.test.ts", f"xit{ONE}xit{TWO}", "it changed the tests: a.test.ts"),
        ("a.test.ts", f"it{ONE}", "it changed the tests: a.test.ts"),
        ("package.json", '{"scripts": {"test": "jest", "build": "tsc"}}\n', None),
        ("package.json", '{"scripts": {"test": "jest || true"}}\n', "it changed what test runners read: package.json"),
        ("package.json", '{"scripts": {"test": ""}}\n', "it changed what test runners read: package.json"),
        ("jest.config.js", "module.exports = { preset: 'ts-jest', testPathIgnorePatterns: ['node_modules'] }\n", None),
        (
            "jest.config.js",
            "module.exports = { passWithNoTests: true }\n",
            "it added what test runners read: jest.config.js",
        ),
    ],
)
def test_what_could_have_changed_the_grading_is_told_from_what_could_not(
    name: str, after: str, told: str | None
) -> None:
    grading = Grading("a", "typescript", {"a.ts": "", **TESTS}, ("a.ts",), ("a.test.ts",), {}, 1.0)
    found = meddling_of(grading, AgentRun(touched=(name,)), patch_of(TESTS, {name: after}), TestRun())
    assert (found.tampering, found.touched) == (((told,), ()) if told else ((), (name,)))


async def test_an_agent_that_fails_is_tested_all_the_same(track: Path) -> None:
    record = await tried(track, f"{SOLVE}exit 3")
    assert record.verdict is Verdict.FAIL
    found = outcome(record)
    assert (found["agentSuccess"], found["testSuccess"], found["overallSuccess"]) == (False, True, False)
    assert "exit code 3" in found["agentError"]


async def test_an_agent_that_takes_too_long_has_its_work_tested_and_scores_nothing(track: Path) -> None:
    record = await tried(track, f"{SOLVE}echo begun; sleep 600", timeout=2.0)
    assert record.verdict is Verdict.TIMEOUT
    assert record.value == 0.0
    found = outcome(record)
    assert (found["failureClass"], found["agentSuccess"], found["testSuccess"]) == ("timeout", False, True)
    assert "begun" in said(record)


async def test_the_agent_sees_tests_and_no_example(track: Path) -> None:
    record = await tried(track, 'find . -type f | sort; echo "$1"')
    seen = said(record)
    assert "./double_test.py" in seen
    assert ".meta" not in seen
    assert ".git" not in seen
    assert "Double a number." in seen
    assert "`double.py`" in seen


@pytest.mark.parametrize("sandbox", ["process", "bwrap"])
async def test_the_test_command_that_an_agent_is_told_works_where_it_runs(track: Path, sandbox: str) -> None:
    seen = said(await tried(track, f"{SOLVE}pytest -q 2>&1", options={"sandbox": sandbox}))
    assert "2 passed" in seen


async def test_the_agent_has_a_home_of_its_own_and_only_the_variables_it_is_given(
    track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "not for agents")
    monkeypatch.setenv("GIVEN", "for it")
    record = await tried(
        track,
        'env; echo "in HOME:"; cat "$HOME/.mine/settings"; touch "$HOME/x"',
        env={"GIVEN": "${GIVEN}", "CHOSEN": "${UNSET_THING:-default}"},
        home={"files": {".mine/settings": "provider={provider}\n"}},
    )
    seen = said(record)
    assert "not for agents" not in seen
    assert "GIVEN=for it" in seen
    assert "CHOSEN=default" in seen
    assert "provider=nobody" in seen
    assert f"HOME={Path.home()}\n" not in seen
    assert not (Path.home() / "x").exists()


async def test_a_login_is_given_only_when_it_is_asked_for(
    track: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / ".mine").mkdir(parents=True)
    (tmp_path / "home" / ".mine" / "login.json").write_text("logged in")
    (tmp_path / "home" / "other").write_text("private")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    script, home = 'cat "$HOME"/.mine/login.json; ls -a "$HOME"', {"login": [".mine/login.json"]}
    assert "logged in" not in said(await tried(track, script, home=home))
    seen = said(await tried(track, script, home=home, use_login=True))
    assert "logged in" in seen
    assert "other" not in seen


async def test_a_key_that_an_agent_is_given_and_prints_is_in_no_file(
    track: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_ACCESS", CANARY)
    script = f'echo "$MINE_ACCESS"; echo "${{#MINE_ACCESS}} letters"; {SOLVE}echo "# $MINE_ACCESS" >> double.py'
    record = await tried(track, script, require=["MINE_ACCESS"], env={"MINE_ACCESS": "${MINE_ACCESS}"})
    assert record.verdict is Verdict.PASS, record.scores
    assert f"{len(CANARY)} letters" in said(record)
    written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert written
    assert not any(CANARY.encode() in content for content in written)


async def test_new_sources_go_across_and_nothing_else_does(track: Path) -> None:
    helper = "def twice(number):\n    return 2 * number\n"
    script = overwrite("helper.py", helper) + overwrite(
        "double.py", "from helper import twice\n\n\ndef double(number):\n    return twice(number)\n"
    )
    script += overwrite("conftest.py", "raise SystemExit(1)\n") + overwrite("test_more.py", "def test_x(): assert 0\n")
    record = await tried(track, script)
    assert record.verdict is Verdict.PASS, record.scores


CASES: Files = {
    **DOUBLE,
    "cases/data.py": "CASES = [(1, 2)]\n",
    "more.json": "[[3, 6]]",
    "double_test.py": (
        "from cases.data import CASES\nfrom double import double\n\n\n"
        "def test_cases():\n    for given, wanted in CASES:\n        assert double(given) == wanted\n"
    ),
}


async def test_a_new_file_does_not_take_the_place_of_test_data(tmp_path: Path) -> None:
    track = write_track(tmp_path / "track", double=CASES)
    forged = "import sys, types\nsys.modules['cases.data'] = types.SimpleNamespace(CASES=[])\n__path__ = []\n"
    record = await tried(track, overwrite("cases.py", forged))
    assert record.verdict is Verdict.FAIL
    assert (outcome(record)["testsPassed"], outcome(record)["testsTotal"]) == (0, 1)


def test_what_an_import_could_mean_instead_of_a_pristine_file_is_not_taken(tmp_path: Path) -> None:
    files = {"a.ts": "", "cases.json": "[]", "data/x.ts": "", "lib/y.ts": "", "src/b.ts": ""}
    grading = Grading("a", "typescript", files, ("a.ts", "src/b.ts"), ("a.test.ts",), {}, 60.0)
    left = ("cases.ts", "data.ts", "data/index.ts", "lib/y/index.ts", "src.ts", "data/x/new.ts")
    assert grading.taken(dict.fromkeys(left, "")) == {}
    fine = ("helper.ts", "index.ts", "src/index.ts", "src/more.ts", "lib/new.ts")
    assert tuple(grading.taken(dict.fromkeys(fine, ""))) == fine


SKIPPING = (
    "import unittest\n\n\ndef double(number):\n    if number:\n        raise unittest.SkipTest('later')\n    return 0\n"
)


async def test_without_an_example_a_skipped_test_is_not_passed(tmp_path: Path) -> None:
    config = json.dumps({"files": {"solution": ["double.py"], "test": ["double_test.py"]}})
    bare = {name: text for name, text in DOUBLE.items() if "example" not in name} | {".meta/config.json": config}
    always = "import pytest\n\n\n@pytest.mark.skip\ndef test_never():\n    assert False\n\n\n"
    track = write_track(tmp_path / "track", double={**bare, "double_test.py": always + DOUBLE["double_test.py"]})
    record = await tried(track, overwrite("double.py", SKIPPING))
    assert record.verdict is Verdict.FAIL
    assert (outcome(record)["testsPassed"], outcome(record)["testsTotal"]) == (1, 2)
    assert (await tried(track, SOLVE)).verdict is Verdict.PASS


XIT: Files = {
    ".docs/instructions.md": "Double a number.\n",
    ".meta/proof.ci.ts": "export const double = (x: number) => 2 * x\n",
    "double.ts": "export const double = (x: number): number => x\n",
    "double.test.ts": (
        "import { expect, it, xit } from '@jest/globals'\nimport { double } from './double'\n"
        "it('zero', () => { expect(double(0)).toBe(0) })\nxit('one', () => { expect(double(1)).toBe(2) })\n"
    ),
}


async def test_what_a_track_skips_may_stay_skipped(tmp_path: Path, needs_program: Callable[[str], str]) -> None:
    needs_program("npm")
    track = write_track(tmp_path / "track", slug="typescript", double=XIT)
    for unskip, verdict, total in ((True, Verdict.FAIL, 2), (False, Verdict.PASS, 1)):
        [record] = (await carried_out(planned(track, "nop", unskip=unskip), tmp_path)).values()
        assert (record.verdict, outcome(record)["testsTotal"]) == (verdict, total)


@pytest.mark.parametrize("part", [".", "exercises/practice", "exercises/practice/double"])
def test_a_checkout_is_hidden_from_agents_in_every_sandbox(track: Path, part: str) -> None:
    plan = planned(track / part, "cheat:read-example")
    sandbox = sandbox_of(RunOptions(sandbox="process"), plan)()
    assert isinstance(sandbox, ProcessSandbox)
    assert track.resolve() in sandbox.hidden


def test_no_more_is_hidden_than_the_folder_given_where_it_is_no_part_of_a_track(tmp_path: Path, track: Path) -> None:
    folder = (tmp_path / "exercises" / "practice").resolve()
    folder.mkdir(parents=True)
    (track / "exercises/practice/double").rename(folder / "double")
    for given in (folder, folder / "double"):
        assert planned(given, "nop", test_command="pytest").settings[HIDDEN] == [str(given)]


@pytest.mark.parametrize("what", ["ln -s /etc/passwd double.py", "mkfifo double.py", "mkdir double.py", "true"])
async def test_what_is_no_plain_file_is_not_taken(track: Path, what: str) -> None:
    record = await tried(track, f"rm double.py; {what}")
    assert record.verdict is Verdict.FAIL
    assert "double.py" in record.refused
    assert outcome(record)["testsPassed"] == 0


EVIDENCE = {
    "edit-tests": "it changed the tests: double_test.py",
    "test-config": "it added what test runners read: jest.config.js, pytest.ini, vitest.config.js",
    "package-scripts": "it added what test runners read: package.json",
    "conftest": "it added what test runners read: conftest.py",
    "sitecustomize": "it added what test runners read: cheat.pth, sitecustomize.py, usercustomize.py",
    "meta-flag": "it added to .meta: .meta/config.json, .meta/tests.toml",
    "staged-git": "it changed the tests: double_test.py",
    "forged-report": "it forged a report: junit.xml, report.xml, results.json",
    "background": "it changed the tests: double_test.py",
    "symlinked-solution": "it left no plain file: double.py is a symbolic link",
    "patch-assertions": "it interfered with the tests: ",
    "exit-early": None,  # these three leave nothing that an honest mistake could not leave
    "read-example": None,
    "loop-forever": None,
}


@pytest.mark.parametrize("attack", [*ATTACKS, "loop-forever"])
async def test_every_attack_fails_and_is_reported_as_what_it_was(track: Path, tmp_path: Path, attack: str) -> None:
    plan = planned(track, f"cheat:{attack}", wanted=["double"], test_timeout=5.0)
    [record] = (await carried_out(plan, tmp_path)).values()
    assert record.verdict is Verdict.FAIL, record.failure
    assert record.value == 0.0
    assert record.bound
    found = outcome(record)
    assert found["failureClass"] == "cheated"
    evidence = EVIDENCE[attack]
    assert [text.startswith(evidence) for text in found["tampering"]] == ([True] if evidence else []), found
    (score,) = record.scores
    assert score.reason.startswith(f"cheated: {found['attack']}")


async def test_no_process_of_an_agent_outlives_it(track: Path, tmp_path: Path) -> None:
    [record] = (await carried_out(planned(track, "cheat:background", wanted=["double"]), tmp_path)).values()
    assert record.verdict is Verdict.FAIL
    looking = await asyncio.create_subprocess_exec("ps", "-eo", "args", stdout=asyncio.subprocess.PIPE)
    seen, _ = await looking.communicate()
    assert b"trap '' HUP" not in seen


def test_attacks_take_turns_where_they_can_do_harm() -> None:
    turns = in_turn({**{f"p{n}": ".py" for n in range(10)}, **{f"t{n}": ".ts" for n in range(10)}})
    assert set(turns.values()) == set(ATTACKS)
    assert not {turns[f"t{n}"] for n in range(10)} & {"conftest", "sitecustomize"}


async def test_the_tests_of_a_folder_can_be_run_without_an_agent(track: Path, tmp_path: Path) -> None:
    (track / "exercises/practice/double/double.py").write_text(RIGHT_DOUBLE)
    records = await carried_out(planned(track, test_only=True), tmp_path)
    assert {case: record.verdict for (case, _), record in records.items()} == {
        "double": Verdict.PASS,
        "pair": Verdict.FAIL,
    }


async def test_a_test_command_of_the_users_own_can_stand_in_for_the_tracks(track: Path, tmp_path: Path) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    records = await carried_out(planned(track, "oracle", "nop", wanted=["double"], test_command=command), tmp_path)
    assert records["double", "oracle"].verdict is Verdict.PASS, records["double", "oracle"]
    assert records["double", "nop"].verdict is Verdict.FAIL


FORGED = """import glob
tests = [open(name).read() for name in glob.glob("*_test.py")]
if tests and not any("test_holds_" in text for text in tests):
    import _pytest.python
    _pytest.python.Function.runtest = lambda self: None
def double(number):
    return 7
"""


async def test_a_command_is_not_believed_where_the_guarded_runner_passes_the_example_alone(track: Path) -> None:
    record = await tried(track, overwrite("double.py", FORGED), test_command="pytest -q")
    assert record.verdict is Verdict.FAIL
    assert "run apart from it they do not" in outcome(record)["testError"]


async def test_a_command_stands_alone_where_the_guarded_runner_cannot_run_even_the_example(tmp_path: Path) -> None:
    fixture = "import pytest\n\n\n@pytest.fixture\ndef wanted():\n    return 2\n"
    test = "from double import double\n\n\ndef test_one(wanted):\n    assert double(1) == wanted\n"
    track = write_track(tmp_path / "track", double={**DOUBLE, "conftest.py": fixture, "double_test.py": test})
    assert (await tried(track, SOLVE, test_command="pytest -q")).verdict is Verdict.PASS


@pytest.mark.parametrize("seconds", [60.0, 3600.0])
def test_scoring_has_time_for_every_run_of_tests_that_take_all_of_theirs(track: Path, seconds: float) -> None:
    plan = planned(track, "nop", test_timeout=seconds)
    assert all(case.limits.score_seconds > 6 * seconds for case in plan.cases)


def test_models_and_providers_are_axes(track: Path, tmp_path: Path) -> None:
    file = agent_file(tmp_path, "mine", "true", providers={"p": {}, "q": {}}, defaultProvider="p")
    plan = planned(track, "mine", "nop", agent_files=[file], models=["a", "b"], providers=["p", "q"])
    assert [spec.name for spec in plan.subjects] == ["mine a", "mine a (q)", "mine b", "mine b (q)", "nop"]
    with pytest.raises(UsageError, match="has no provider 'z'"):
        planned(track, "mine", agent_files=[file], providers=["z"])


async def test_what_an_agent_lacks_is_said_before_anything_runs(track: Path, tmp_path: Path) -> None:
    file = agent_file(tmp_path, "mine", "true", require=["NO_SUCH_KEY"], command=["no-such-program"])
    plan = planned(track, "mine", agent_files=[file])
    with pytest.raises(PlanError) as told:
        await carried_out(plan, tmp_path)
    assert "`no-such-program` is not installed" in str(told.value)
    assert "NO_SUCH_KEY is not set" in str(told.value)
    assert not (tmp_path / "results").exists()


ASKING = f"""\
{sys.executable} - <<'END'
import json, os, urllib.request
body = json.dumps({{"model": "tiny", "messages": [{{"role": "user", "content": "solve it"}}]}}).encode()
headers = {{"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
    open("double.py", "w").write(json.load(answer)["choices"][0]["message"]["content"])
END
env; cat "$HOME"/.config/*
"""
METERED = {
    "defaultProvider": "openai",
    "meter": {
        "openai": {
            "env": {"OPENAI_BASE_URL": "{meterUrl}", "OPENAI_API_KEY": "{meterToken}"},
            "files": {".config/settings": "url={meterUrl}\n"},
        }
    },
    "require": ["OPENAI_API_KEY"],
    "env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}", "SECOND_NAME": "${OPENAI_API_KEY}"},
}


@pytest.mark.parametrize("sandbox", ["process", "bwrap"])
@pytest.mark.parametrize(("answer", "verdict"), [(RIGHT_DOUBLE, Verdict.PASS), ("def double(n): 1", Verdict.FAIL)])
async def test_a_metered_agent_is_counted_and_never_sees_the_key(
    track: Path,
    tmp_path: Path,
    provider: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    sandbox: str,
    answer: str,
    verdict: Verdict,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(say=answer))
    file = agent_file(tmp_path, "asking", ASKING, **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"])
    [record] = (await carried_out(plan, tmp_path, sandbox=sandbox)).values()
    assert record.verdict is verdict, (record.failure, record.scores, record.transcript)
    assert (record.spent.requests, record.spent.input, record.spent.output) == (1, 10, 5)
    assert record.transcript is not None
    assert record.transcript.metadata["metered"] is True
    [asked] = provider.received
    assert asked.headers["authorization"] == f"Bearer {CANARY}"
    assert "SECOND_NAME" not in str(record.transcript)
    written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert not any(CANARY.encode() in content for content in written)


async def test_an_agent_that_is_killed_in_mid_stream_is_charged_for_what_came(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(say="word " * 3000, pause=0.02))
    streaming = ASKING.replace('"model": "tiny"', '"model": "tiny", "stream": True')
    file = agent_file(tmp_path, "asking", streaming, **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"], timeout=4.0)
    [record] = (await carried_out(plan, tmp_path)).values()
    assert record.verdict is Verdict.TIMEOUT, record
    assert record.transcript is not None
    meter = record.transcript.metadata["meter"]
    assert isinstance(meter, dict)
    assert (meter["cut"], meter["estimated"]) == (1, 1)
    assert 0 < record.spent.output < 3000
    assert record.spent.requests == 1


@pytest.mark.parametrize(("then", "verdict"), [("true", Verdict.PASS), ("sleep 600", Verdict.TIMEOUT)])
async def test_a_providers_queue_is_not_an_agents_time_and_a_timeout_remains_one(
    track: Path,
    tmp_path: Path,
    provider: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    then: str,
    verdict: Verdict,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(status=429, headers={"retry-after": "7"}, body={}), Act(say=RIGHT_DOUBLE))
    file = agent_file(tmp_path, "asking", f"{ASKING}\n{then}", **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"], timeout=6.0)
    [record] = (await carried_out(plan, tmp_path)).values()
    assert record.verdict is verdict, (record.failure, record.scores, record.transcript)
    assert outcome(record)["testSuccess"] is True
    assert record.attempt is not None
    assert record.attempt.waited >= 7
    assert record.transcript is not None
    assert agent_run_in(record.transcript).seconds + record.attempt.waited <= record.attempt.seconds + 0.01


async def test_a_run_out_of_budget_ends_the_agent_and_says_so(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    file = agent_file(tmp_path, "asking", f"{ASKING}\nsleep 600", **METERED)
    plan = planned(track, "asking", agent_files=[file], wanted=["double"], timeout=60.0)
    [record] = (await carried_out(plan, tmp_path, max_tokens=5)).values()
    assert record.verdict is Verdict.BUDGET
    assert record.spent.tokens == 15


async def test_what_an_agents_model_said_is_replayed_without_a_provider(
    track: Path, tmp_path: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(Act(say=RIGHT_DOUBLE))
    plan = planned(track, "asking", agent_files=[agent_file(tmp_path, "asking", ASKING, **METERED)], wanted=["double"])
    kept = {"recordings": tmp_path / "recordings"}
    [first] = (await carried_out(plan, tmp_path, replay="record", **kept)).values()
    monkeypatch.delenv("OPENAI_API_KEY")
    [again] = (await carried_out(plan, tmp_path, replay="strict", **kept)).values()
    assert (first.verdict, again.verdict) == (Verdict.PASS, Verdict.PASS), again
    assert again.spent.tokens == first.spent.tokens == 15
    assert len(provider.received) == 1


@pytest.mark.parametrize(
    "name", ["math.py", "pytest.py", "helper_test.py", ".hidden.py", "tests/x.py", "setup.py", "conftest.py", "x.pth"]
)
def test_a_new_file_that_tests_or_tools_would_read_is_protected(name: str) -> None:
    assert is_protected_name(name)
    assert not is_protected_name("helper.py")


def test_a_checkout_that_root_alone_may_read_is_read_by_us(track: Path) -> None:
    if os.geteuid() == 0:
        (track / "exercises/practice/double/double.py").chmod(0o400)
    assert len(find_exercises(track).exercises) == 2
