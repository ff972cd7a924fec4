"""Test what someone who watches a run is told."""

import asyncio
import io

from rich.console import Console

from bakeoff._kernel.clock import Delay
from bakeoff.bundled.demo import demo_plan
from bakeoff.cli.progress import Bars, DelayNotes, Lines, RunProgress
from bakeoff.engine.run_control import RunControl
from bakeoff.record import Phase, Record, Score, Transcript


def record(subject: str, value: float) -> Record:
    return Record(
        case="c",
        subject=subject,
        round=0,
        attempt_key="a",
        score_key="s",
        started=0.0,
        threshold=1.0,
        attempt=Phase(seconds=0.1),
        transcript=Transcript(),
        scores=(Score(name="exact", value=value),),
    )


def drawn(progress: RunProgress, width: int = 100) -> list[str]:
    screen = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    bars = Bars(screen, progress)
    screen.print(bars.get_renderable())
    shown = screen.file.getvalue() if isinstance(screen.file, io.StringIO) else ""
    return [line.strip() for line in shown.splitlines() if line.strip()]


def test_every_subject_has_a_bar_that_names_what_it_is_busy_with():
    control = RunControl()
    progress = RunProgress.of(demo_plan(with_model=False), control)
    progress.add(record("oracle", 1.0))
    progress.add(record("nop", 0.0))
    control.in_flight = {0: ("scripted", "sum"), 1: ("nop", "capital-of-france")}
    lines = drawn(progress)
    assert lines[0].startswith("trials")
    assert "2/60" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["oracle", "scripted", "nop"]
    assert "1 passed" in lines[1]
    assert "now sum" in lines[2]
    assert "now capital-of-france" in lines[3]


def test_each_bar_stays_on_one_line_in_a_narrow_terminal():
    control = RunControl()
    progress = RunProgress.of(demo_plan(with_model=False), control)
    control.in_flight = {at: ("nop", f"a-case-with-a-long-name-{at}") for at in range(8)}
    assert len(drawn(progress, width=60)) == 4


def test_waiting_is_shown_as_waiting_with_its_reason_and_its_cap():
    control = RunControl()
    progress = RunProgress.of(demo_plan(with_model=False), control)
    control.delays = {0: Delay("openai: refused", 2.0, 60.0), 1: Delay("openai: busy", 8.0, 290.0)}
    assert "2 waiting, at most 4 min 50 s (openai: busy)" in progress.details()


def test_the_reason_is_printed_at_the_first_retry_and_when_it_changes():
    console = Console(file=io.StringIO(), width=200)
    notes = DelayNotes(console, seconds=0.0)
    for reason in ("m: refused", "m: refused", "m: busy"):
        notes("m", Delay(reason, 1.0, 300.0))
    notes.once({"m": "m: 401 [bold]"}, "no further trial of it is started")
    notes.once({"m": "m: 401 [bold]"}, "no further trial of it is started")
    notes.once({"n": "m: busy [bold]"}, "its trials were stopped without a result")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "m: refused; trying again, for at most 5 min 00 s",
        "m: busy; trying again, for at most 5 min 00 s",
        "m: 401 [bold]; no further trial of it is started",
        "n: m: busy [bold]; its trials were stopped without a result",
    ]


def test_many_subjects_share_one_bar():
    progress = RunProgress(1000, tuple(f"s{at}" for at in range(50)))
    assert len(drawn(progress)) == 1


def test_a_name_with_markup_or_controls_is_shown_as_it_is():
    control = RunControl()
    progress = RunProgress(10, ("[bold]a", "b\x1b[31m"), control)
    control.in_flight = {0: ("[bold]a", "[red]case\n")}
    lines = drawn(progress)
    assert "[bold]a" in lines[1]
    assert "[red]case\\n" in lines[1]
    assert "\\x1b[31m" in lines[2]


async def test_a_log_names_the_trials_in_flight_while_none_ends():
    out = io.StringIO()
    progress = RunProgress(10, ("a",))
    progress.control.in_flight = {0: ("a", "slow-case")}
    beat = asyncio.create_task(Lines(Console(file=out, width=200), progress, seconds=0.0).repeat())
    while "slow-case" not in out.getvalue():
        await asyncio.sleep(0.05)
    beat.cancel()
    assert out.getvalue().startswith("0/10 trials, 0 failed; in flight: a on slow-case")
