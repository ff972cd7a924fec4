"""Treatments: files that are laid over the workspace as a factor, whether they help, hurt, and are opened."""

import json
import os
from pathlib import Path

import pytest

from bakeoff.doors.agents.results.write import result_files
from bakeoff.doors.components.plan import ComponentsRequest
from bakeoff.doors.components.plan import build_plan as build_components_plan
from bakeoff.doors.components.suites import find_suites
from bakeoff.doors.treatments import read_treatments
from bakeoff.engine.registry import default_registry
from bakeoff.errors import PlanError, UsageError
from bakeoff.report.compare.within_run import treatment_effects, treatment_section
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.summary import tallied
from bakeoff.subjects.agent_run import agent_run_in
from bakeoff.subjects.command_agent import CLI_AGENT, CommandAgent
from bakeoff.subjects.folder_changes import files_read, mark_unread
from bakeoff.verdict import Verdict

from .exercise_runs import SOLVE, carried_out, planned
from .small_tracks import agent_file, overwrite, write_files

pytestmark = pytest.mark.usefixtures("in_a_folder_of_its_own")

PAIR_SOLVED = overwrite("left.py", "LEFT = 40\n") + overwrite("right.py", "RIGHT = 2\n")
LEARNER = f"""\
if [ -f AGENTS.md ] && grep -q 'pairs' AGENTS.md .skills/add/SKILL.md; then
  if [ -f left.py ]; then
{PAIR_SOLVED}
  fi
elif [ -f double.py ]; then
{SOLVE}
fi
"""
"""Solves one exercise by itself, and with the notes the other instead."""


def notes(folder: Path) -> Path:
    return write_files(folder / "notes", {"AGENTS.md": "Add pairs.\n", ".skills/add/SKILL.md": "How to add pairs.\n"})


REPLACES = """\
rm -r AGENTS.md .skills "$HOME"/.settings
mkfifo AGENTS.md
ln -s /etc .skills
echo 'no folder' > "$HOME"/.settings
"""
"""Puts a pipe, a link and a file where a second try would read, mark and write."""


async def test_an_agent_that_replaces_what_a_second_try_needs_excuses_nothing(track: Path, tmp_path: Path) -> None:
    asked = agent_file(tmp_path, "tricky", REPLACES, home={"files": {".settings/it": "on"}})
    plan = planned(
        track, "tricky", agent_files=[asked], treatments=[f"notes={notes(tmp_path)}"], wanted=["double"], tries=2
    )
    records = await carried_out(plan, tmp_path)
    assert {subject: record.verdict for (_, subject), record in records.items()} == {
        "tricky": Verdict.FAIL,
        "tricky with notes": Verdict.FAIL,
    }
    assert [agent_run_in(record.transcript).tries for record in records.values() if record.transcript] == [2, 2]


async def test_nothing_is_said_of_opened_files_where_showing_changes_reads_them(track: Path, tmp_path: Path) -> None:
    asked = agent_file(tmp_path, "idle", "true")
    plan = planned(
        track,
        "idle",
        agent_files=[asked],
        treatments=[f"notes={notes(tmp_path)}"],
        wanted=["double"],
        show_progress=True,
    )
    tally = tallied(plan, (await carried_out(plan, tmp_path)).values())
    [effect] = treatment_effects(plan, tally.summary(), tally.cells)
    assert (effect.opened, effect.watched) == (None, 0)


async def test_scripts_of_a_treatment_can_be_run(track: Path, tmp_path: Path) -> None:
    asked = agent_file(tmp_path, "runner", f'[ ! -x "$HOME/plain" ] && ./tools/go && "$HOME/go" || exit 3\n{SOLVE}')
    script = "#!/bin/sh\ntrue\n"
    tools = write_files(tmp_path / "tools", {"tools/go": script, "home/go": script, "home/plain": "true\n"})
    plan = planned(track, "runner", agent_files=[asked], treatments=[f"tools={tools}"], wanted=["double"], rounds=1)
    records = await carried_out(plan, tmp_path)
    assert records["double", "runner with tools"].verdict is Verdict.PASS


async def test_settings_of_a_treatment_are_in_the_home_of_the_agent(track: Path, tmp_path: Path) -> None:
    reads = f"grep -q doubled $HOME/.mine/settings && [ ! -e home ] || exit 0\n{SOLVE}"
    asked = agent_file(tmp_path, "settled", reads, home={"files": {".mine/login": "on"}})
    settings = write_files(tmp_path / "settings", {"home/.mine/settings": "doubled\n"})
    plan = planned(
        track, "settled", agent_files=[asked], treatments=[f"settings={settings}"], wanted=["double"], rounds=1
    )
    records = await carried_out(plan, tmp_path)
    assert {subject: record.verdict for (_, subject), record in records.items()} == {
        "settled": Verdict.FAIL,
        "settled with settings": Verdict.PASS,
    }
    tally = tallied(plan, records.values())
    [effect] = treatment_effects(plan, tally.summary(), tally.cells)
    assert (effect.helped, effect.opened, effect.watched) == (("double",), 1, 1)


def test_what_bakeoff_writes_into_a_home_is_no_treatment(track: Path, tmp_path: Path) -> None:
    asked = agent_file(tmp_path, "settled", "true", home={"files": {".mine/login": "on"}})
    settings = write_files(tmp_path / "settings", {"home/.mine/login": "off"})
    plan = planned(track, "settled", agent_files=[asked], treatments=[f"settings={settings}"], wanted=["double"])
    treated = CommandAgent.from_spec(plan.subjects[1])
    assert treated.check(plan.cases[0]) == (
        "its treatment has 'home/.mine/login', which bakeoff writes itself: leave it out"
    )


async def test_a_treatment_that_helps_here_and_hurts_there_is_shown_in_pairs(
    track: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unread = write_files(tmp_path / "unread", {"docs/MORE.md": "Nobody reads this.\n"})
    given = [f"notes={notes(tmp_path)}", f"unread={unread}"]
    plan = planned(track, "learner", "nop", agent_files=[agent_file(tmp_path, "learner", LEARNER)], treatments=given)
    assert [spec.name for spec in plan.subjects] == ["learner", "learner with notes", "learner with unread", "nop"]
    records = (await carried_out(plan, tmp_path)).values()
    tally = tallied(plan, records)
    helped, unopened = treatment_effects(plan, tally.summary(), tally.cells)
    assert (helped.subject, helped.treatment, helped.helped, helped.hurt) == (
        "learner",
        "notes",
        ("pair",),
        ("double",),
    )
    assert (helped.comparison.paired, helped.comparison.cases, helped.comparison.difference) == (True, 2, 0.0)
    assert (helped.opened, helped.watched, helped.verdict) == (2, 2, "no effect shown")
    assert (unopened.helped, unopened.hurt, unopened.opened, unopened.watched) == ((), (), 0, 2)
    from rich.console import Console

    section = treatment_section((helped, unopened))
    assert section is not None
    print_blocks(Console(width=200), (section,))
    said = " ".join(capsys.readouterr().out.split())
    assert "notes for learner no effect shown 50.0 % 50.0 % +0.0" in said
    assert "2 of 2 1: pair 1: double" in said
    assert "learner never opened a file of unread" in said
    touched = [
        record.transcript.metadata["agent"] for record in records if record.transcript and "learner" in record.subject
    ]
    assert "AGENTS.md" not in json.dumps(touched), "the treatment is not the agent's doing"
    names = {name.partition("-")[0] for name, _ in result_files(plan, records)}
    assert names == {"nop", "learner", "learner_with_notes", "learner_with_unread"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("notes", "is not written as NAME=DIR"),
        ("no tes=.", "is not written as NAME=DIR"),
        ("none=.", "'none' is the arm without a treatment, which is always there"),
        ("notes=nowhere", "'nowhere' is not a folder"),
        ("notes=empty", "'empty' has no file with a text"),
        ("notes=binary", "logo.png: not UTF-8 text; use plain text files"),
        ("notes=skipped", "'skipped' has no file with a text besides .git, node_modules, which are skipped"),
        ("notes=many", "'many' holds more than 500 files and folders, or more than 8 MB: name a folder that has only"),
        (
            "notes=large",
            "'large' holds more than 500 files and folders, or more than 8 MB: name a folder that has only",
        ),
        ("notes=/", "'/' holds more than 500 files and folders"),
    ],
)
def test_a_treatment_that_cannot_be_used_is_told(given: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_files(tmp_path / "skipped", {".git/HEAD": "ref", "node_modules/a/index.js": "1"})
    write_files(tmp_path / "many", {f"{place}/a": "1" for place in range(251)})
    write_files(tmp_path / "large", {"a": ""})
    os.truncate(tmp_path / "large/a", 9 * 1024**2)
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary/logo.png").write_bytes(b"\x89PNG\xff\x00")
    with pytest.raises(UsageError) as told:
        read_treatments([given])
    assert problem in str(told.value)


def test_two_treatments_of_one_name_are_told(tmp_path: Path) -> None:
    folder = notes(tmp_path)
    with pytest.raises(UsageError, match="there are two treatments 'notes'; rename one"):
        read_treatments([f"notes={folder}", f"notes={folder}"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("double.py", "its treatment has 'double.py', which the exercise has too: leave it out"),
        ("double.py/x", "its treatment has 'double.py/x', which the exercise has too: leave it out"),
        (".docs", "its treatment has '.docs', which the exercise has too: leave it out"),
        ("helper.py", "its treatment has 'helper.py', which would be graded as part of the answer"),
    ],
)
def test_a_treatment_replaces_no_file_of_an_exercise_and_is_no_part_of_an_answer(
    name: str, problem: str, track: Path, tmp_path: Path
) -> None:
    folder = write_files(tmp_path / "bad", {name: "x = 1\n"})
    file = agent_file(tmp_path, "learner", "true")
    plan = planned(track, "learner", agent_files=[file], treatments=[f"bad={folder}"], wanted=["double"])
    with pytest.raises(PlanError) as told:
        default_registry().with_subject(CLI_AGENT, CommandAgent.from_spec).resolve(plan)
    assert problem in str(told.value)


def test_a_prompt_fragment_is_a_treatment_of_models(tmp_path: Path) -> None:
    (tmp_path / "terse.md").write_text("Be terse.\n")
    (tmp_path / "many").mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / "many" / name).write_text(f"Part {name}.\n")
    request = ComponentsRequest(models=("openai:gpt-5", "oracle"), treatments=("terse=terse.md", "many=many"))
    plan = build_components_plan(request, find_suites(None, ["python-ttl-cache"]).suites)
    told = {spec.name: (spec.base, spec.treatment, spec.options.get("system")) for spec in plan.subjects}
    assert told == {
        "openai:gpt-5": (None, "", None),
        "openai:gpt-5 with terse": ("openai:gpt-5", "terse", "Be terse."),
        "openai:gpt-5 with many": ("openai:gpt-5", "many", "Part a.md.\n\nPart b.md."),
        "oracle": (None, "", None),
    }


def test_a_file_counts_as_opened_when_it_is_read_and_not_before(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.md": "a", "b/c.md": "c", "gone.md": "g"})
    names = ("a.md", "b/c.md", "gone.md")
    if not mark_unread(tmp_path, names):
        pytest.skip("this file system keeps no time of reading")
    assert files_read(tmp_path, names) == ()
    (tmp_path / "b/c.md").read_bytes()
    (tmp_path / "gone.md").unlink()
    assert files_read(tmp_path, names) == ("b/c.md",)


def test_an_empty_first_file_keeps_no_other_from_being_noticed(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.md": "", "b.md": "b"})
    (tmp_path / "probe").write_text("p")
    if not mark_unread(tmp_path, ["probe"]):
        pytest.skip("this file system keeps no time of reading")
    assert mark_unread(tmp_path, ["a.md", "b.md"])
    assert files_read(tmp_path, ["a.md", "b.md"]) == ()


def test_files_behind_links_are_neither_changed_nor_said_to_be_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"outside/a.md": "a"})
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.md").symlink_to(tmp_path / "outside/a.md")
    (tmp_path / "work/folder").symlink_to(tmp_path / "outside")
    before = (tmp_path / "outside/a.md").stat().st_atime_ns
    assert not mark_unread(tmp_path / "work", ["a.md", "folder/a.md"])
    assert (tmp_path / "outside/a.md").stat().st_atime_ns == before
    assert files_read(tmp_path / "work", ["a.md", "folder/a.md"]) == ()
