"""Agents and controls through whole runs: what they see, and how their attempts end."""

import json
import os
from pathlib import Path

import pytest

from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.engine.resources import sandbox_of
from bakeoff.errors import PlanError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import HIDDEN
from bakeoff.sandbox.process import ProcessSandbox
from bakeoff.verdict import Verdict

from .exercise_runs import CANARY, SOLVE, carried_out, outcome, planned, said, tried
from .small_tracks import agent_file, bytes_of, overwrite, write_track

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("in_a_folder_of_its_own")]


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


async def test_an_agent_that_fails_is_tested_all_the_same(track: Path) -> None:
    record = await tried(track, f"{SOLVE}exit 3")
    assert record.verdict is Verdict.FAIL
    found = outcome(record)
    assert (found["agentSuccess"], found["testSuccess"], found["overallSuccess"]) == (False, True, False)
    assert "exit code 3" in found["agentError"]
    assert found["failureClass"] == "agent error"


async def test_an_agent_that_prints_too_much_is_told_the_limit(track: Path) -> None:
    found = outcome(await tried(track, f"{SOLVE}yes spam"))
    assert (found["failureClass"], found["testSuccess"]) == ("agent error", True)
    assert "it printed more than " in found["agentError"]
    assert " kB (the limit on stdout and on stderr)" in found["agentError"]


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


def test_a_checkout_that_root_alone_may_read_is_read_by_us(track: Path) -> None:
    if os.geteuid() == 0:
        (track / "exercises/practice/double/double.py").chmod(0o400)
    assert len(find_exercises(track).exercises) == 2


TWICE = {
    ".docs/instructions.md": "Double a number.\n",
    ".meta/config.json": json.dumps({"files": {"solution": ["twice.ts"], "test": ["twice.test.ts"]}}),
    ".meta/proof.ci.ts": "export const twice = (n: number): number => 2 * n\n",
    "babel.config.cjs": "module.exports = { presets: [['@exercism/babel-preset-typescript', { corejs: '3.37' }]] }\n",
    "package.json": "{}\n",
    "twice.ts": "export const twice = (n: number): number => n\n",
    "twice.test.ts": (
        "import { expect, it } from '@jest/globals'\nimport { twice } from './twice'\n\n"
        "it('doubles', () => expect(twice(2)).toBe(4))\n"
    ),
}
TESTS_ITSELF = """\
node_modules/.bin/jest > log 2>&1 && exit 3
grep -q 'Tests: .*1 failed' log || { cat log; exit 4; }
touch node_modules/mine 2> /dev/null && exit 5
echo 'export const twice = (n: number): number => n + n' > twice.ts
node_modules/.bin/jest > log 2>&1 || { cat log; exit 6; }
node_modules/.bin/tsc --noEmit || exit 7
rm log
"""


async def test_an_agent_runs_the_tests_and_the_type_check_that_it_is_told_of_offline(tmp_path: Path) -> None:
    """With the configuration of the published track, whose Babel preset is installed too."""
    root = write_track(tmp_path / "track", "typescript", twice=TWICE)
    plan = planned(root, "mine", agent_files=[agent_file(tmp_path, "mine", TESTS_ITSELF)], timeout=120.0)
    prompt = plan.cases[0].prompt
    assert "- Test command: `node_modules/.bin/jest` (its packages are installed" in prompt
    assert "- Type check, which counts too: `node_modules/.bin/tsc --noEmit`" in prompt
    [record] = (await carried_out(plan, tmp_path, sandbox="bwrap")).values()
    assert record.verdict is Verdict.PASS, (record.failure, record.scores, record.transcript)
    assert outcome(record).get("tampering", []) == outcome(record).get("touched", []) == []
