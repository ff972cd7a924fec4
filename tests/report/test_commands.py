"""The commands as a person types them."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

from bakeoff.plan import ScorerSpec
from bakeoff.record import Phase, Usage
from bakeoff.report.render.html.index_page import read_entry
from bakeoff.report.view.app import Pages
from bakeoff.storage.run_folder import RunFolder

from ..warm_bakeoff import Bakeoff
from .runs import Values, plan_of, record_of, run_of, write_run

pytestmark = pytest.mark.journey

BAKEOFF = Path(sys.executable).parent / "bakeoff"


@pytest.fixture
def environment(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**environment, "BAKEOFF_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def two_runs(tmp_path: Path) -> None:
    """`s` gets better from the first run to the second, and `t` is new in it."""
    runs = tmp_path / "results" / "runs"
    run_of(runs / "2026-01-01T00-00-00-first", plan_of(20, ["s"]), {"s": lambda case, round_: float(case < 5)})
    later: Values = {"s": lambda case, round_: float(case < 18), "t": lambda case, round_: 0.0}
    run_of(runs / "2026-01-02T00-00-00-second", plan_of(20, ["s", "t"]), later)


FIRST, SECOND = "2026-01-01T00-00-00-first", "2026-01-02T00-00-00-second"


@pytest.mark.usefixtures("two_runs")
def test_compare_exits_with_its_verdict_and_speaks_four_formats(bakeoff: Bakeoff, tmp_path: Path) -> None:
    better = bakeoff("compare", FIRST, "latest")
    assert better.returncode == 0, better.stderr
    assert better.stdout.startswith("Gate passed: an improvement is shown. Exit code 0.\n\ns in 2026-01-02")
    assert "\x1b" not in better.stdout
    worse = bakeoff("compare", "latest", FIRST, "--json")
    assert worse.returncode == 1
    told = json.loads(worse.stdout)
    assert told["exit_code"] == 1
    assert told["pairs"][0]["ruling"]["verdict"] == "regressed"
    assert bakeoff("compare", "latest", FIRST, "--exit-zero", "--markdown").returncode == 0
    again = run_of(tmp_path / "again", plan_of(20, ["s"]), {"s": lambda case, round_: float(case < 18)})
    same = bakeoff("compare", "latest", str(again.journal_file), "--subject-a", "s")
    assert same.returncode == 0, "no regression is shown"
    assert "no regression shown (could have missed up to " in " ".join(same.stdout.split())
    assert bakeoff("compare", FIRST, "latest", "--gate", "regression", "--undecidable", "fail").returncode == 0
    page = bakeoff("compare", FIRST, "latest", "--html", "out/page.html")
    assert page.stdout.startswith("Gate passed: "), "the verdict is still printed"
    assert "Cases" not in page.stdout
    assert (tmp_path / "out" / "page.html").read_text().startswith("<!doctype html>")


def test_different_scorers_are_the_first_line_and_exit_3_unless_compared_anyway(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    runs = tmp_path / "results" / "runs"
    for name, scorer, score in (("old", "exact", 1.0), ("new", "contains", 0.0)):
        plan = plan_of(20, ["s", "t"]).with_scorers((ScorerSpec(kind=scorer),))
        write_run(runs / name, plan, [record_of(trial, score) for trial in plan.trials()])
    for arguments in ((), ("--gate", "no-new-failures"), ("--subject-a", "s")):
        refused = bakeoff("compare", "old", "new", *arguments)
        assert refused.returncode == 3, refused.stdout
        first = " ".join(refused.stdout.partition("\n\n")[0].split())
        assert first.startswith("Gate undecided: not comparable: scorers: 'exact ("), first
        assert "--anyway compares them all the same" in first
    anyway = bakeoff("compare", "old", "new", "--anyway")
    assert anyway.returncode == 1
    assert anyway.stdout.startswith("Gate failed: although the scorers differ: a regression is shown")


def test_a_candidate_of_which_half_never_ran_passes_no_gate_and_both_ledgers_are_printed(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    runs, plan = tmp_path / "results" / "runs", plan_of(60, ["s"], rounds=3)
    run_of(runs / "old", plan, {"s": lambda case, round_: 1.0})
    write_run(runs / "new", plan, [record_of(trial) for trial in plan.trials()][:89])
    done = bakeoff("compare", "old", "new", "--gate", "regression", "--html", "page.html")
    said = " ".join(done.stdout.split())
    assert done.returncode == 3
    assert said.startswith("Gate undecided: the candidate: 91 of 180 undecided (91 not run); 0 allowed")
    text = " ".join(bakeoff("compare", "old", "new").stdout.split())
    assert "Baseline: 180 trials planned: 180 passed." in text
    assert "Candidate: 180 trials planned: 89 passed, 91 not run." in text
    page = (tmp_path / "page.html").read_text()
    assert '<span class="chip tone-partial">Gate undecided</span>' in page
    assert '<p class="headline">Gate undecided: the candidate: 91 of 180' in page
    allowed = bakeoff("compare", "old", "new", "--allow-undecided", "91")
    assert allowed.returncode == 3
    assert "what is missing could decide" in " ".join(allowed.stdout.split())
    told = json.loads(bakeoff("compare", "old", "new", "--json").stdout)
    assert told["pairs"][0]["candidate"]["ledger"]["missing"] == {"not run": 91}


@pytest.mark.usefixtures("two_runs")
def test_compare_within_one_run_names_both_subjects(bakeoff: Bakeoff) -> None:
    done = bakeoff("compare", "latest", "--subject-a", "t", "--subject-b", "s")
    assert done.returncode == 0
    assert done.stdout.startswith("Gate passed: an improvement is shown. Exit code 0.\n\ns against t")


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", FIRST, "nosuch"), 'no run "nosuch"'),
        (("compare", FIRST, "latest", "--gate", "best"), "is not one of 'verdict', 'regression'"),
        (("compare", FIRST, "latest", "--json", "--markdown"), "use only one of them"),
        (("compare", FIRST, "latest", "--html", "/proc/nosuch/x.html"), "cannot be written"),
        (("compare", "results"), "results is not a kind of file that can be read"),
        (("leaderboard", "nosuch"), 'no run "nosuch"'),
        (("export", "--format", "xlsx"), "is not one of 'csv', 'parquet'"),
        (("export", "--format", "parquet"), "name a file with -o"),
        (("export", "--format", "inspect", "-o", "one.eval"), "a log holds only one"),
        (("export", "--format", "inspect", "-o", "x.json", "--subject", "s"), "name a file *.eval"),
        (("export", "--format", "badge", "--subject", "x"), "has no subject 'x'"),
        (("export", "-o", "/proc/nosuch/x.csv"), "cannot be written"),
        (("export", "--format", "github", "-o", "x"), "leave -o out"),
        (("selfcheck", "latest"), "choose one with --subject: s, t"),
    ],
)
def test_mistakes_are_sentences_and_exit_2(bakeoff: Bakeoff, arguments: tuple[str, ...], words: str) -> None:
    done = bakeoff(*arguments)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("two_runs")
def test_leaderboard_takes_the_latest_of_each_and_survives_a_damaged_run(bakeoff: Bakeoff, tmp_path: Path) -> None:
    broken = tmp_path / "results" / "runs" / "2026-01-03T00-00-00-broken"
    broken.mkdir()
    (broken / "plan.json").write_text("{")
    done = bakeoff("leaderboard", "--json")
    told = json.loads(done.stdout)
    assert [(entry["standing"]["subject"], entry["source"]) for entry in told["entries"]] == [
        ("s", SECOND),
        ("t", SECOND),
    ]
    assert told["entries"][0]["history"] == [0.25, 0.9]
    assert len(told["unreadable"]) == 1
    assert "Not read:" in bakeoff("leaderboard").stdout
    assert "| `s` | 1 | a |" in bakeoff("leaderboard", "--markdown").stdout
    assert bakeoff("leaderboard", "--html", "board.html").returncode == 0
    assert "<table>" in (tmp_path / "board.html").read_text()


@pytest.mark.usefixtures("two_runs")
def test_every_format_is_exported_to_a_file_others_may_read(bakeoff: Bakeoff, tmp_path: Path) -> None:
    for format_, name in (("csv", "x.csv"), ("parquet", "x.parquet"), ("junit", "x.xml"), ("markdown", "x.md")):
        done = bakeoff("export", "latest", "--format", format_, "-o", f"out/{name}")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "out" / name).stat().st_mode & 0o777 == 0o644
    assert bakeoff("export", "--format", "inspect", "-o", "out/logs").returncode == 0
    assert sorted(path.name for path in (tmp_path / "out" / "logs").iterdir()) == ["01-s.eval", "02-t.eval"]
    assert bakeoff("export", "--format", "badge", "--subject", "s").stdout.startswith("<svg")
    assert not list((tmp_path / "out").glob(".new-*")), "nothing half-made stays behind"


def test_every_format_has_the_chosen_subject_and_no_other(bakeoff: Bakeoff, tmp_path: Path) -> None:
    values: Values = dict.fromkeys(("alpha", "omega"), lambda case, round_: 0.0)
    run_of(tmp_path / "results" / "runs" / "one", plan_of(3, values), values)
    for format_ in ("csv", "junit", "github", "markdown", "badge"):
        done = bakeoff("export", "latest", "--format", format_, "--subject", "omega")
        assert done.returncode == 0, done.stderr
        assert "omega" in done.stdout, format_
        assert "alpha" not in done.stdout, format_
    assert bakeoff("export", "--format", "parquet", "--subject", "omega", "-o", "x.parquet").returncode == 0
    assert set(pandas.read_parquet(tmp_path / "x.parquet")["subject"]) == {"omega"}


@pytest.mark.usefixtures("two_runs")
def test_one_folder_that_cannot_be_read_keeps_nobody_from_the_others(bakeoff: Bakeoff, tmp_path: Path) -> None:
    runs = tmp_path / "results" / "runs"
    plan = plan_of(2, ["s"])
    pipe = run_of(runs / "2026-01-03T00-00-00-pipe", plan, {"s": lambda case, round_: 1.0})
    pipe.journal_file.unlink()
    os.mkfifo(pipe.journal_file)
    huge = [record_of(trial, spent=Usage(cost=1e308), attempt=Phase(seconds=1e308)) for trial in plan.trials()]
    write_run(runs / "2026-01-04T00-00-00-huge", plan, huge)
    listed = json.loads(bakeoff("runs", "list", "--json").stdout)
    assert [row["state"].partition(":")[0] for row in listed] == ["incomplete", "unreadable", "failed", "failed"]
    for command in (("runs", "show"), ("runs", "check"), ("export",), ("leaderboard",), ("report", "--no-open")):
        done = bakeoff(*command, pipe.name)
        assert (done.returncode, done.stdout) == (2, ""), command
        assert "journal.jsonl cannot be read: it is not a file" in done.stderr
    for words in (("runs", "show", "--json"), ("export",), ("report", "--no-open")):
        done = bakeoff(*words, "2026-01-04T00-00-00-huge")
        assert done.returncode == 0, done.stderr
    assert "2 damaged lines are left out" in bakeoff("runs", "show").stderr
    assert "too large to be a measurement" in bakeoff("runs", "check").stdout


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_no_encoding_and_no_name_of_a_folder_is_a_bug(bakeoff: Bakeoff, tmp_path: Path, encoding: str) -> None:
    strange = os.fsdecode(b"caf\xe9")
    run_of(
        tmp_path / "results" / "runs" / strange, plan_of(3, ["日本"]), {"日本": lambda case, round_: float(case > 0)}
    )
    formats = [("export", "--format", name) for name in ("csv", "junit", "github", "markdown", "badge")]
    for command in (
        ("runs", "list"),
        ("runs", "show"),
        ("runs", "show", "--json"),
        ("runs", "check"),
        ("leaderboard", "--markdown"),
        ("report", "--no-open"),
        ("index", "--no-open"),
        ("export", "--format", "inspect", "-o", "x.eval"),
        *formats,
    ):
        done = bakeoff(*command, PYTHONIOENCODING=encoding)
        assert done.returncode == 0, (command, done.stderr)
    entry = read_entry(RunFolder(tmp_path / "results" / "runs" / strange))
    assert (entry.run, entry.page) == ("caf\\udce9", "runs/caf%E9/report.html"), "the link leads to the folder"
    assert Pages(tmp_path / "results", tmp_path).find(entry.run).name == strange


@pytest.mark.usefixtures("two_runs")
def test_github_gets_annotations_on_stdout_and_its_summary_in_its_file(bakeoff: Bakeoff, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    done = bakeoff("export", "--format", "github", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert all(line.startswith("::") for line in done.stdout.splitlines())
    assert summary.read_text().startswith("## Bakeoff:")
    assert "## Bakeoff:" in bakeoff("export", "--format", "github").stdout


@pytest.mark.usefixtures("two_runs")
def test_runs_are_listed_with_the_scores_of_their_plan_so_far(bakeoff: Bakeoff, tmp_path: Path) -> None:
    third = {"s": lambda case, round_: float(case < 10)}
    run_of(tmp_path / "results" / "runs" / "2026-01-03T00-00-00-third", plan_of(20, ["s"]), third)
    listed = json.loads(bakeoff("runs", "list", "--json").stdout)
    assert [(row["run"][:10], row["history"]) for row in listed] == [
        ("2026-01-03", [0.25, 0.9, 0.5]),
        ("2026-01-02", [0.25, 0.9]),
        ("2026-01-01", [0.25]),
    ]
    assert "▃█▅" in bakeoff("runs", "list").stdout


@pytest.mark.usefixtures("two_runs")
def test_bars_and_dashes_have_plainer_signs_where_the_encoding_has_none(bakeoff: Bakeoff, tmp_path: Path) -> None:
    listed = bakeoff("runs", "list", PYTHONIOENCODING="ascii")
    assert listed.returncode == 0, listed.stderr
    assert " -#  " in listed.stdout
    name = "日本"
    run_of(tmp_path / "results" / "runs" / "2026-01-04", plan_of(20, [name]), {name: lambda case, round_: 0.5})
    shown = bakeoff("runs", "show", PYTHONIOENCODING="ascii").stdout
    assert "20 cases x 1 subject x 1 round" in shown
    assert "#####....." in shown
    assert "\\u65e5\\u672c" in shown, "names stay apart"


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_list_of_runs_fits_the_terminal_and_keeps_their_names(tmp_path: Path, width: int) -> None:
    text = on_a_terminal(width, "runs", "list", folder=tmp_path)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= width
    assert all(name in "".join(line.split(" ")[0] for line in lines[1:]) for name in (FIRST, SECOND))
    assert "90.0 %" in text
    assert ("▃█" in text) == (width >= 80)


def on_a_terminal(width: int, *arguments: str, folder: Path) -> str:
    """Return what a person would see."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "LINES": "50", "TERM": "xterm"}
    with subprocess.Popen([BAKEOFF, *arguments], cwd=folder, env=environment, stdout=theirs) as process:
        os.close(theirs)
        pieces = []
        with contextlib.suppress(OSError):  # which is how a terminal says that nobody writes any more
            while piece := os.read(ours, 65536):
                pieces.append(piece)
    os.close(ours)
    assert process.returncode == 0
    return b"".join(pieces).decode()


def test_selfcheck_runs_the_demo_twice_and_reports_the_flip_rate(bakeoff: Bakeoff, tmp_path: Path) -> None:
    done = bakeoff("selfcheck", "--sandbox", "process", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["subject"] == "scripted"
    assert told["within"]["rate"] == pytest.approx(0.1), "`sum` changes its mind"
    assert 0 <= told["between"]["rate"] <= 0.3
    assert len(list((tmp_path / "results" / "runs").iterdir())) == 2
    again = bakeoff("selfcheck", told["runs"][0], "--rounds", "1", "--sandbox", "process")
    assert again.returncode == 0, again.stderr
    assert "Flip rate" in again.stdout
