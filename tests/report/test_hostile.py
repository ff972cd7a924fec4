"""Hostile run folders and journals: every output is produced safely, or refused with a sentence."""

import csv
import io
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import junitparser
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from bakeoff._kernel.choices import ExportFormat
from bakeoff.errors import BakeoffError
from bakeoff.report.blocks import Block, Report
from bakeoff.report.compare.comparison import compare_sources
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.exports.formats import export_records
from bakeoff.report.leaderboard import describe_leaderboard, rank_sources
from bakeoff.report.readers import Source, open_source
from bakeoff.report.render.html.render import write_report_page
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run, summary_table

from .hostile import BREAKOUTS, JOURNALS, NAME, hostile_plan, texts, write_hostile

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MAX_SIZE = 3_000_000  # bytes of a text output over eight trials, whatever was put into them
TABLE_TAGS = {"h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "pre"}
MARKDOWN_TAGS = TABLE_TAGS | {"code", "h4"}


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name == "href"}


def check_blocks(blocks: Report | tuple[Block, ...]) -> None:
    """In Markdown and on a terminal; what pages do is tried in a browser."""
    markdown = to_markdown(blocks)
    assert Seen(MarkdownIt("gfm-like").render(markdown)).tags <= MARKDOWN_TAGS
    file = io.StringIO()
    print_blocks(Console(file=file, width=100, highlight=False, force_terminal=False), blocks)
    for text in (markdown, file.getvalue()):
        assert not CONTROL.search(text)
        assert len(text) < MAX_SIZE


def check_page(path: Path) -> None:
    """Whole in itself, with links to its own places and to files beside it."""
    text = path.read_text("utf-8")
    page = Seen(text)
    assert not {name for name in page.attributes if name.startswith("on") or name in ("src", "style")}
    assert not page.tags & {"img", "iframe", "object", "embed", "base", "form", "b"}
    assert all(re.fullmatch(r"#[\w-]+|data:,|[\w./%-]+", link) for link in page.links), page.links
    assert text.count("<script>") == 1
    assert not CONTROL.search(text)
    assert len(text) < MAX_SIZE


def comparison(source: Source) -> None:
    report = compare_sources(source, source)
    check_page(write_report_page(source.path.parent / "compare.html", describe_comparison(report)))
    check_blocks(describe_comparison(report))
    assert len(report.model_dump_json()) < MAX_SIZE


def leaderboard(source: Source) -> None:
    board = rank_sources([source])
    check_page(write_report_page(source.path.parent / "board.html", describe_leaderboard(board)))
    check_blocks(describe_leaderboard(board))
    assert board.model_dump_json()


def summary(source: Source) -> None:
    with RunRecords(source.plan, source.records()) as shelf:
        found = shelf.summary
        check_blocks(describe_run(source.name, shelf))
    file = io.StringIO()
    print_blocks(Console(file=file, width=80, highlight=False), [summary_table(found)])
    assert not CONTROL.search(file.getvalue())


def check_csv(text: str) -> None:
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            assert not cell.startswith(("=", "@", "\t", "\r"))
            assert not (cell.startswith(("+", "-")) and not re.fullmatch(r"[-+][\d.e+]+", cell)), "only numbers of ours"
            assert not CONTROL.search(cell)


def check_junit(text: str) -> None:
    suites = list(junitparser.JUnitXml.fromstring(text.encode()))
    assert [suite.name for suite in suites] == [NAME, "other", "gate"]
    assert [case.name for suite in suites[:2] for case in suite] == [NAME, "second"] * 2


def check_github(text: str) -> None:
    for found in text.splitlines():
        assert "##[" not in found
        if found.lstrip().startswith("::"):
            assert re.match(r"::(error|warning|notice) title=[^:,]*::", found), found
    assert not CONTROL.search(text)


def check_svg(text: str) -> None:
    assert Seen(text).tags <= {"svg", "title", "rect", "path", "g", "text"}
    assert len(text) < 5000


def check_markdown(text: str) -> None:
    assert Seen(MarkdownIt("gfm-like").render(text)).tags <= MARKDOWN_TAGS


CHECKS: dict[ExportFormat, Callable[[str], None]] = {
    "csv": check_csv,
    "junit": check_junit,
    "github": check_github,
    "badge": check_svg,
    "markdown": check_markdown,
}


def export(source: Source, format_: ExportFormat, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    output = {"parquet": str(folder / "x.parquet"), "inspect": str(folder / "logs")}.get(format_, "-")
    with RunRecords(source.plan, source.records()) as shelf:
        export_records(source, shelf, format_, output)
    if format_ in CHECKS:
        text = capsys.readouterr().out
        CHECKS[format_](text)
        assert len(text) < MAX_SIZE
    if format_ == "inspect":
        read = pytest.importorskip("inspect_ai.log", reason="pip install 'bakeoff[bench]'").read_eval_log
        for log in (folder / "logs").glob("*.eval"):
            assert read(str(log)).eval.task == NAME


def or_a_sentence(act: Callable[[], None]) -> str | None:
    """None if it went well; what was said if it was refused."""
    said = None
    try:
        act()
    except BakeoffError as error:
        said = str(error)
    assert said is None or (len(said) < 2000 and not CONTROL.search(said)), repr(said)
    return said


@pytest.mark.journey  # one of the journals is long, and every output reads it
@pytest.mark.parametrize("name", JOURNALS)
def test_every_output_of_a_hostile_run_is_safe_or_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    source = open_source(write_hostile(tmp_path / "run", JOURNALS[name]))
    said = [
        or_a_sentence(lambda: comparison(source)),
        or_a_sentence(lambda: leaderboard(source)),
        or_a_sentence(lambda: summary(source)),
        *(or_a_sentence(lambda f=format_: export(source, f, tmp_path, capsys)) for format_ in get_args(ExportFormat)),  # type: ignore[misc]
    ]
    if name.startswith(("text-", "long-")):
        assert said == [None] * len(said), "texts are no reason to refuse"


@pytest.mark.parametrize("name", JOURNALS)
def test_every_output_of_a_hostile_journal_without_its_plan_is_safe_or_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    alone = tmp_path / "alone.jsonl"
    alone.write_bytes(JOURNALS[name](hostile_plan()))

    def everything() -> None:
        source = open_source(alone)
        for act in (comparison, leaderboard, summary):
            act(source)
        with RunRecords(source.plan, source.records()) as shelf:
            for format_, check in CHECKS.items():
                if format_ == "junit":
                    continue  # its names are those of the journal
                capsys.readouterr()
                export_records(source, shelf, format_, "-")
                check(capsys.readouterr().out)

    or_a_sentence(everything)


PLANS = {
    "not-json": b"\x00\xff",
    "deep": b"[" * 100_000,
    "wrong-types": b'{"name": 3, "cases": {}, "subjects": "all"}',
    "controls-in-names": b'{"name": "x\\u001b[31m", "cases": [], "subjects": [], "scorers": []}',
    "empty": b"",
    "nothing-in-it": b'{"name": "x", "cases": [], "subjects": [], "scorers": []}',
    "twice": b'{"name":"x","cases":[{"id":"a","prompt":""},{"id":"a","prompt":""}],"scorers":[{"kind":"exact"}],'
    b'"subjects":[{"kind":"nop","name":"s"}]}',
    "no-rounds": b'{"name":"x","cases":[],"subjects":[],"scorers":[],"rounds":1e400}',
}


@pytest.mark.parametrize("name", PLANS)
def test_a_hostile_plan_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    folder = write_hostile(tmp_path / "run", JOURNALS["empty"])
    (folder / "plan.json").write_bytes(PLANS[name])
    assert or_a_sentence(lambda: leaderboard(open_source(folder)))


def test_nothing_of_one_run_shows_in_the_report_of_another(tmp_path: Path) -> None:
    secret = "only-in-the-other-run"
    write_hostile(tmp_path / "other", lambda plan: JOURNALS["text-script"](plan).replace(b"alert(1)", secret.encode()))
    here = open_source(write_hostile(tmp_path / "here", JOURNALS["text-escapes"]))
    page = write_report_page(tmp_path / "page.html", describe_comparison(compare_sources(here, here)))
    assert secret not in page.read_text("utf-8")


def test_there_are_more_than_twenty_hostile_journals() -> None:
    assert len(JOURNALS) >= 20
    assert len(BREAKOUTS) >= 10


def test_a_browser_runs_nothing_of_a_page(tmp_path: Path, needs_program: Callable[[str], str]) -> None:
    act = "document.documentElement.dataset.owned=1"
    text = f'</pre><script>{act}</script><img src=x onerror="{act}"><svg onload="{act}"></svg><b id=canary>'
    run = open_source(write_hostile(tmp_path / "run", texts(text)))
    page = write_report_page(tmp_path / "page.html", describe_comparison(compare_sources(run, run)))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    command = [needs_program("chromium"), *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert "<main" in done.stdout, done.stderr
    assert "data-owned" not in done.stdout
    assert "<b id=" not in done.stdout
