"""Text for the terminal: aligned at every width, no colour when piped, and nothing untrusted emitted as it is."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from bakeoff.record import Transcript, Usage
from bakeoff.report.blocks import Block, BulletList, Code, Quote, Report, Table, columns, heading, paragraph
from bakeoff.report.compare.comparison import compare_sources
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.leaderboard import describe_leaderboard, rank_sources
from bakeoff.report.render.terminal import print_blocks
from bakeoff.report.render.text_tables import folded_name
from bakeoff.report.run_summary import summary_table
from bakeoff.report.summary import Summary, summarise

from ..runs import Values, lost, plan_of, record_of, run_of, source

WIDTHS = (80, 100, 160)
NARROW = (40, 60, 75, 80, 120)
LONG_NAME = "a-subject-with-a-rather-long-name"


def text_of(
    width: int, *, blocks: Report | tuple[Block, ...] = (), summary: Summary | None = None, **console: object
) -> str:
    file = io.StringIO()
    out = Console(file=file, width=width, highlight=False, **console)  # type: ignore[arg-type]
    if summary is not None:
        print_blocks(out, [summary_table(summary)])
    print_blocks(out, blocks)
    return file.getvalue()


def summary_with_losses() -> Summary:
    plan = plan_of(20, [LONG_NAME, "b", "日本語"], rounds=5)
    records = [
        lost(trial, ("infra", "grader", "budget")[trial.index % 3]) if trial.index % 7 == 0 else record_of(trial, 1.0)
        for trial in plan.trials()
        if trial.index < 250
    ]
    return summarise(plan, records)


def first_column(text: str) -> str:
    """The names of a summary, however they were folded."""
    lines = text.splitlines()
    body = lines[next(place for place, line in enumerate(lines) if line.startswith("Subject")) + 1 :]
    rows = body[: next(place for place, line in enumerate(body) if not line or re.match("Lost of|A wider", line))]
    return "".join(re.split(r"\s{2,}|\s(?=[\d–])", line)[0].strip() for line in rows)


@pytest.mark.parametrize("width", sorted({*WIDTHS, *NARROW}))
def test_a_summary_fits_its_width_and_says_everything(width: int) -> None:
    text = text_of(width, summary=summary_with_losses())
    assert all(cell_len(line.rstrip()) <= width for line in text.splitlines())
    assert "…" not in text, "no number is cut"
    together = " ".join(text.split())
    for words in ("Passed/", "scored", "72/72", "71/71", "12 infra", "12 grader", "12 budget", "16", "17"):
        assert words in together


@pytest.mark.parametrize("width", NARROW)
@pytest.mark.parametrize("cases", [2, 20])
def test_sixteen_columns_have_readable_titles_at_every_width(width: int, cases: int) -> None:
    names = [f"provider-{number}:some/model-with-a-name-{number}.5" for number in range(16)]
    rows = tuple(
        (f"case {at}", *(f"{100 * at / 3:.1f} % ({number}/10)" for number in range(16))) for at in range(cases)
    )
    table = Table(columns("case", *(f"{name}>" for name in names)), rows, splits=True)
    text = text_of(width, blocks=(table,))
    assert all(cell_len(line.rstrip()) <= width for line in text.splitlines())
    assert "…" not in text
    for number in range(16):
        assert text.count(f"({number}/10)") == cases
    told = "".join(text.split())
    for number in range(16):
        assert f"provider-{number}:" in told
        assert f"-name-{number}.5" in told or f"{number}.5" in told


def test_names_are_folded_after_their_signs() -> None:
    assert folded_name("openrouter:qwen/qwen3-235b-a22b").split("\n") == ["openrouter:qwen/", "qwen3-235b-a22b"]
    assert folded_name("x" * 20).split("\n") == ["x" * 16, "x" * 4]
    assert folded_name("gpt-4o") == "gpt-4o"


@pytest.mark.parametrize("width", NARROW)
def test_no_width_loses_a_name_or_a_score(width: int) -> None:
    text = text_of(width, summary=summary_with_losses())
    assert first_column(text) == f"{LONG_NAME}b日本語"
    assert text.partition("·")[0].count("100.0 %") == 3, "in the table"


def test_what_a_narrow_terminal_leaves_out_is_named_and_nothing_else_is_left_out() -> None:
    summary = summary_with_losses()
    assert "A wider terminal also shows: 95 % interval, Cost, Time" in " ".join(text_of(40, summary=summary).split())
    sixty = text_of(60, summary=summary)
    assert "86.1–100.0" in sixty
    assert "A wider terminal also shows: Cost, Time" in sixty
    assert "wider terminal" not in text_of(80, summary=summary)


@pytest.mark.parametrize("width", NARROW)
def test_short_names_keep_their_interval_at_every_width(width: int) -> None:
    plan = plan_of(20, ["x", "y"])
    summary = summarise(plan, [record_of(trial, float(trial.index % 4 < 2)) for trial in plan.trials()])
    rows = [line.split() for line in text_of(width, summary=summary).splitlines()]
    assert [row[:4] for row in rows if row and row[0] in ("x", "y")] == [
        [name, "50.0", "%", "29.9–70.1"] for name in "xy"
    ]


def test_rounds_are_drawn_when_there_are_more_than_a_few() -> None:
    plan = plan_of(8, ["s"], rounds=4)
    summary = summarise(plan, [record_of(trial, float(trial.index % 8 < 2 * trial.round)) for trial in plan.trials()])
    assert summary.subjects[0].by_round == (0.0, 0.25, 0.5, 0.75)
    assert "▁▃▅▇" in text_of(120, summary=summary)
    few = plan_of(8, ["s"], rounds=2)
    assert "By round" not in text_of(120, summary=summarise(few, [record_of(trial) for trial in few.trials()]))


def test_answers_from_recordings_are_counted_under_the_table() -> None:
    plan = plan_of(4, ["s", "t"])
    replayed = Transcript(output="x", metadata={"replayed": True})
    told = Transcript(output="x", metadata={"replayed": "a subject may say anything"})
    records = [record_of(trial, transcript=replayed if trial.index < 3 else told) for trial in plan.trials()]
    summary = summarise(plan, records)
    assert [subject.replayed for subject in summary.subjects] == [2, 1]
    assert "3 of 8 trials were answered from recordings" in text_of(80, summary=summary)
    fresh = summarise(plan, [record_of(trial) for trial in plan.trials()])
    assert "recordings" not in text_of(80, summary=fresh)


def test_answers_that_were_recorded_are_counted_too() -> None:
    plan = plan_of(4, ["s", "t"])
    recorded = Transcript(output="x", metadata={"recorded": True})
    both = Transcript(output="x", metadata={"recorded": True, "replayed": True})
    told = {0: recorded, 1: recorded, 2: both}
    summary = summarise(plan, [record_of(trial, transcript=told.get(trial.index)) for trial in plan.trials()])
    assert [(subject.recorded, subject.replayed) for subject in summary.subjects] == [(1, 1), (1, 0)]
    assert "2 of 8 trials were answered live and recorded for replays." in text_of(80, summary=summary)
    assert summary.model_dump(mode="json")["subjects"][1]["recorded"] == 1


def test_tokens_that_nobody_counted_are_unknown_and_estimates_are_marked() -> None:
    plan = plan_of(2, ["silent", "guessed", "exact"])
    guess = Transcript(output="x", metadata={"meter": {"exchanges": 1, "estimated": 1}})
    more: dict[str, dict[str, Any]] = {
        "silent": {"spent": Usage(requests=1)},
        "guessed": {"transcript": guess, "spent": Usage(requests=1, input=9, output=10, cost=0.5)},
        "exact": {"spent": Usage(requests=1, input=700, output=1, cost=0.5)},
    }
    summary = summarise(plan, [record_of(trial, **more[trial.subject.name]) for trial in plan.trials()])
    text = text_of(160, summary=summary)
    cells = {name: next(line for line in text.splitlines() if line.startswith(name)).split() for name in more}
    assert cells["silent"][-2] == "–", "before the bar"
    assert ("≈ 38" in " ".join(cells["guessed"]), "≈ $1.00" in " ".join(cells["guessed"])) == (True, True)
    assert ("≈" in cells["exact"], "1,402" in cells["exact"]) == (False, True)
    assert "≈: in 2 trials a provider sent no usage" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_stand_under_each_other(width: int) -> None:
    lines = text_of(width, summary=summary_with_losses()).splitlines()
    rows = [line for line in lines if "/" in line and " %" in line and "95 %" not in line]
    ends = {cell_len(line[: line.index(" %") + 2]) for line in rows}
    assert len(rows) == 3
    assert len(ends) == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_comparisons_and_leaderboards_fit_their_width(tmp_path: Path, width: int) -> None:
    values: Values = {"a": lambda case, round_: 0.0, "b": lambda case, round_: case / 20}
    run = source(run_of(tmp_path / "2026-11-15T09-51-25-demo", plan_of(20, list(values), rounds=2), values))
    report = compare_sources(run, run)
    for blocks in (describe_comparison(report), describe_leaderboard(rank_sources([run]))):
        text = text_of(width, blocks=blocks)
        assert all(cell_len(line.rstrip()) <= width for line in text.splitlines())


def test_a_pipe_gets_no_escape_and_a_terminal_without_colour_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    summary = summary_with_losses()
    change = (Code("-old\n+new", "diff", "output"),)
    assert "\x1b" not in text_of(100, summary=summary, blocks=change)
    terminal = {"force_terminal": True, "color_system": "truecolor", "legacy_windows": False}
    colours = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    assert colours.search(text_of(100, summary=summary, blocks=change, **terminal))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours.search(text_of(100, summary=summary, blocks=change, **terminal))


CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@given(st.text(max_size=60) | st.text(alphabet=st.characters(categories=("Cc", "Cf", "Zl", "Zp", "Co", "Cn"))))
def test_control_characters_are_shown_and_never_emitted(text: str) -> None:
    quote = Quote(text)
    blocks = (
        heading(quote),
        paragraph("x ", quote),
        BulletList(((quote,),)),
        Table(columns("a", "b>"), ((quote, quote),)),
        Code(f"{text}\n+{text}", "diff", text),
    )
    assert not CONTROL.search(text_of(80, blocks=blocks))


@pytest.mark.parametrize("markup", ["[red]x[/red]", "[link=https://evil.example]x[/link]", "[/]", ":smile:"])
def test_markup_of_our_own_tool_is_not_interpreted(markup: str) -> None:
    terminal: dict[str, Any] = {"force_terminal": True, "color_system": "truecolor"}
    blocks = (paragraph(Quote(markup)), Table(columns("a"), ((Quote(markup),),)))
    assert text_of(80, blocks=blocks, **terminal).count(markup) == 2
