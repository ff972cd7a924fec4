"""Every command for runs works on the log of every tool."""

import json
import re
from collections import Counter
from itertools import cycle, groupby
from pathlib import Path

import pytest

from bakeoff._kernel.choices import ExportFormat
from bakeoff.cli.export import run_export
from bakeoff.doors import parts_of
from bakeoff.errors import UsageError
from bakeoff.logs.reader import import_log
from bakeoff.plan import IMPORTED
from bakeoff.report.judges.labelling import draw
from bakeoff.report.readers import Source
from bakeoff.report.view.app import Pages
from bakeoff.storage.run_folder import RunFolder

from ..warm_bakeoff import Bakeoff
from .fixtures import ALL, Logged

pytestmark = pytest.mark.full


@pytest.fixture
def environment(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**environment, "BAKEOFF_CACHE": str(tmp_path / "cache")}


@pytest.fixture(scope="module", params=ALL, ids=lambda logged: logged.file)
def logged(request: pytest.FixtureRequest) -> Logged:
    found: Logged = request.param
    return found


@pytest.fixture(scope="module")
def run(logged: Logged, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return import_log(logged.path, tmp_path_factory.mktemp("results"), logged.reader.choices).folder


def test_a_log_is_recognised_by_its_content_whatever_its_name(logged: Logged, tmp_path: Path) -> None:
    if logged.path.is_dir():
        renamed = tmp_path / "some folder"
        renamed.symlink_to(logged.path)
    else:
        renamed = tmp_path / "log.txt"
        renamed.write_bytes(logged.path.read_bytes())
    assert Source(renamed, logged.reader).plan.door == "imported"
    assert logged.reader.recognises(renamed)


def test_passes_failures_and_lost_trials_are_those_that_the_tool_itself_counted(logged: Logged, run: RunFolder) -> None:
    plan = run.read_plan()
    records = list(run.latest_records(plan))
    verdicts = Counter(record.verdict.value for record in records)
    expected = {"pass": logged.passed, "fail": logged.failed, "infra": logged.infra, "grader": logged.grader}
    assert verdicts == Counter({verdict: count for verdict, count in expected.items() if count})
    if logged.tokens is not None:
        assert sum(record.spent.tokens for record in records) == logged.tokens
    assert all(record.failure and record.failure.message for record in records if record.verdict == "infra")


def test_an_imported_run_holds_what_the_log_says_read_without_import(logged: Logged, run: RunFolder) -> None:
    direct = Source(logged.path, logged.reader)
    plan = run.read_plan()
    assert direct.plan == plan
    imported = {(each.case, each.subject, each.round): each for each in run.latest_records(plan)}
    assert {(each.case, each.subject, each.round): each for each in direct.records()} == imported


def test_a_run_says_which_tool_version_and_file_it_comes_from(logged: Logged, run: RunFolder) -> None:
    source = run.read_plan().settings[IMPORTED]
    assert isinstance(source, dict)
    assert f"{source['tool']} {source.get('version', '')}".strip() == logged.tool
    assert source["file"] == logged.path.name
    if logged.path.is_file():
        assert re.fullmatch("[0-9a-f]{64}", str(source["sha256"]))
    assert run.beginning()["imported"] == source


def test_answers_of_a_run_can_be_labelled(logged: Logged, run: RunFolder) -> None:
    plan = run.read_plan()
    scorer = plan.scorers[0].name
    if not logged.scored or not any(record.transcript for record in run.latest_records(plan)):
        with pytest.raises(UsageError):
            draw(run, plan, scorer, None)
        return
    drawn = draw(run, plan, scorer, None)
    assert len(drawn) >= logged.passed
    assert all(each.output is not None for each in drawn)


async def test_a_run_is_served_by_view(logged: Logged, run: RunFolder, tmp_path: Path) -> None:
    pages = Pages(run.path.parents[1], tmp_path, parts_of)
    assert logged.tool in (await pages.run(run.name)).read_text()
    assert (await pages.index()).is_file()


@pytest.mark.parametrize(
    ("logged", "format_"),
    list(zip(ALL, cycle(["csv", "junit", "markdown", "inspect"]), strict=False)),
    indirect=["logged"],
)
def test_a_run_is_exported(run: RunFolder, tmp_path: Path, format_: ExportFormat) -> None:
    single = format_ == "inspect" and len(run.read_plan().subjects) == 1
    target = tmp_path / ("out.eval" if single else "out")
    run_export(run=run.name, results=run.path.parents[1], format_=format_, output=str(target), subject=None)
    assert target.exists()


class Everything:
    """All logs, imported by one command."""

    def __init__(self, bakeoff: Bakeoff, folder: Path) -> None:
        self.bakeoff, self.folder = bakeoff, folder
        self.runs: dict[Logged, str] = {}
        for scorer, logs in groupby(ALL, key=lambda logged: logged.scorer):
            group = list(logs)
            only = () if scorer is None else ("--scorer", scorer)
            done = bakeoff("import", *(str(logged.path) for logged in group), *only, "--json")
            assert done.returncode == 0, done.stderr
            self.runs |= dict(zip(group, json.loads(done.stdout)["runs"], strict=True))

    def names(self) -> list[str]:
        return [Path(run).name for run in self.runs.values()]


@pytest.fixture
def everything(bakeoff: Bakeoff, tmp_path: Path) -> Everything:
    return Everything(bakeoff, tmp_path)


def test_imported_runs_are_listed_shown_and_checked(everything: Everything) -> None:
    listed = json.loads(everything.bakeoff("runs", "list", "--json").stdout)
    assert {row["run"] for row in listed} == set(everything.names())
    for logged, run in everything.runs.items():
        shown = everything.bakeoff("runs", "show", run)
        assert all(share in shown.stdout for share in logged.shown), shown.stdout
    assert everything.bakeoff("runs", "check", "latest").returncode == 0


def test_imported_runs_have_pages_that_name_their_source_and_an_index(everything: Everything) -> None:
    written = everything.bakeoff("report", *everything.names(), "--no-open")
    assert written.returncode == 0, written.stderr
    pages = [(everything.folder / page).read_text() for page in written.stdout.split()]
    assert all(logged.tool in page for logged, page in zip(ALL, pages, strict=True))
    assert not [page for page in pages if "<script>alert(1)" in page], "what models wrote stays text"
    assert everything.bakeoff("index", "--no-open").returncode == 0
    assert everything.bakeoff("build", "--no-open").returncode == 0


def test_imported_runs_are_ranked_and_compared(everything: Everything) -> None:
    board = everything.bakeoff("leaderboard", *(name for name in everything.names()))
    assert board.returncode == 0, board.stderr
    assert all(share in board.stdout for logged in ALL if logged.scored for share in logged.shown)
    one, other = (run for logged, run in everything.runs.items() if logged.tool.startswith("Inspect"))
    compared = everything.bakeoff("compare", one, other)
    assert compared.returncode == 3, "one of five cases was lost on both sides, and nothing is shown without it"
    assert "counted against the candidate -20.0 points, for it +20.0" in " ".join(compared.stdout.split())
    assert "0 better, 4 the same, 0 worse" in compared.stdout
    inside = everything.bakeoff("compare", next(run for run in everything.runs.values() if "capitals" in run))
    assert "atlas" in inside.stdout, inside.stderr
    assert "echo" in inside.stdout


def test_logs_are_compared_shown_ranked_and_exported_without_import(bakeoff: Bakeoff, tmp_path: Path) -> None:
    board = bakeoff("leaderboard", *(str(logged.path) for logged in ALL))
    assert all(share in board.stdout for logged in ALL if logged.scored for share in logged.shown), board.stderr
    for logged in ALL:
        log = str(logged.path)
        if logged.path.is_dir() or logged.format == "inspect":
            assert logged.shown[0] in bakeoff("runs", "show", log).stdout
            page = bakeoff("report", log, "-o", str(tmp_path / "page.html"), "--no-open")
            assert page.returncode == 0, page.stderr
            assert logged.tool in (tmp_path / "page.html").read_text()
    same = bakeoff("compare", str(ALL[0].path), str(ALL[1].path))
    assert "0 better, 4 the same, 0 worse" in same.stdout, same.stderr


def test_an_imported_run_is_not_run_again_and_labels_need_an_import(bakeoff: Bakeoff, everything: Everything) -> None:
    refused = bakeoff("resume", everything.names()[0], "--trust")
    assert refused.returncode == 2
    assert "Inspect" in refused.stderr
    label = bakeoff("label", str(ALL[0].path))
    assert label.returncode == 2
    assert "bakeoff import" in label.stderr
