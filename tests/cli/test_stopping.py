"""Stopping a run from the keyboard."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.journey

BAKEOFF = Path(sys.executable).parent / "bakeoff"
SLOW = textwrap.dedent("""\
    import asyncio, sys
    from bakeoff.cli.flags import EndingFlags
    from bakeoff.cli.run_plan import carry_out, check_plan
    from bakeoff.options import RunOptions
    from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec

    answer = {"output": "hello", "seconds": float(sys.argv[1])}
    plan = Plan(
        name="slow",
        cases=tuple(Case(id=f"case-{n}", prompt="hello", expected="hello") for n in range(40)),
        subjects=(SubjectSpec(kind="scripted", name="slow", options={"default": answer}),),
        scorers=(ScorerSpec(kind="exact"),),
    )
    sys.exit(carry_out(check_plan(plan, RunOptions(jobs=2)), EndingFlags()))
""")


class Running:
    """A slow run in a process of its own, on a pseudo-terminal so that it shows what a person would see."""

    def __init__(self, folder: Path, seconds: float, script: str = SLOW) -> None:
        self.folder = folder
        self.screen, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(seconds)], cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal
        )
        os.close(terminal)
        self.seen = ""

    def wait_for(self, words: str) -> None:
        while not re.search(words, self.seen):
            ready, _, _ = select.select([self.screen], [], [], 60)
            assert ready, f"{words!r} never came; seen: {self.seen}"
            try:
                self.seen += os.read(self.screen, 4096).decode(errors="replace")
            except OSError:  # the other end is closed
                assert re.search(words, self.seen), self.seen
                return

    def interrupt(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        while True:
            try:
                data = os.read(self.screen, 4096)
            except OSError:
                break
            if not data:
                break
            self.seen += data.decode(errors="replace")
        os.close(self.screen)
        return self.process.wait(60)

    def verdicts(self) -> list[str]:
        [run] = (self.folder / "results" / "runs").iterdir()
        lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
        return [line["type"] for line in lines if line["type"] in ("record", "end")]


def test_ctrl_c_once_finishes_what_is_in_flight_and_the_run_resumes(tmp_path: Path) -> None:
    running = Running(tmp_path, 0.3)
    running.wait_for(r"[1-9]\d*/40")
    running.interrupt()
    running.wait_for("finishing the trials in flight")
    assert running.end() == 130
    assert "bakeoff resume" in running.seen
    assert "Traceback" not in running.seen
    finished = running.verdicts()
    assert finished[-1] == "end"
    assert 2 < len(finished) < 40
    resumed = subprocess.run([BAKEOFF, "resume", "--jobs", "40"], cwd=tmp_path, capture_output=True, check=False)
    assert resumed.returncode == 0
    assert running.verdicts().count("record") == 40, "none lost, none double"


def test_ctrl_c_twice_stops_at_once(tmp_path: Path) -> None:
    running = Running(tmp_path, 60)
    running.wait_for("trials")
    running.interrupt()
    running.wait_for("finishing the trials in flight")
    running.interrupt()
    assert running.end() == 130, running.seen
    assert running.verdicts() == ["end"]


def test_sigterm_twice_stops_at_once(tmp_path: Path) -> None:
    running = Running(tmp_path, 60)
    running.wait_for("trials")
    running.interrupt(signal.SIGTERM)
    running.wait_for("send SIGTERM again")
    running.interrupt(signal.SIGTERM)
    assert running.end() == 130, running.seen
    assert running.verdicts() == ["end"]


def test_a_progress_bar_is_shown_on_a_terminal_and_lines_elsewhere(tmp_path: Path) -> None:
    running = Running(tmp_path, 0.05)
    running.wait_for("━")
    assert running.end() == 0
    piped = subprocess.run([sys.executable, "-c", SLOW, "0"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert piped.returncode == 0
    assert "━" not in piped.stderr
    assert "\x1b" not in piped.stdout + piped.stderr


def test_a_bug_is_told_in_a_sentence_with_a_file_and_an_exit_code_of_its_own(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom bakeoff.cli import main as m\n@m.app.command()\ndef boom(): 1 / 0\n"
        "sys.argv[1:] = ['boom']\nm.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 70
    assert "bakeoff has a bug: ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr
    [details] = tmp_path.glob("bakeoff-crash-*.txt")
    assert "Traceback" in details.read_text()


LARGE = textwrap.dedent("""\
    import sys
    from bakeoff.cli.flags import EndingFlags
    from bakeoff.cli.run_plan import carry_out, check_plan
    from bakeoff.options import RunOptions
    from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec

    files = "mkdir many; cd many; seq 1 30000 | xargs touch; cd ..; touch ready; sleep 600"
    plan = Plan(
        name="large",
        cases=(Case(id="case", prompt="hello", hidden={"test.sh": files}),),
        subjects=(SubjectSpec(kind="scripted", name="quick", options={"default": "hello"}),),
        scorers=(ScorerSpec(kind="command", options={"argv": ["sh", "test.sh"]}),),
    )
    sys.exit(carry_out(check_plan(plan, RunOptions(jobs=1, sandbox="process")), EndingFlags()))
""")


def test_ctrl_c_three_times_while_a_large_workspace_is_removed_prints_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = tmp_path / "places"
    places.mkdir(mode=0o755)
    monkeypatch.setenv("TMPDIR", str(places))
    running = Running(tmp_path, 0, LARGE)
    while not list(places.glob("bakeoff-place-*/work/ready")):
        assert running.process.poll() is None, running.seen
        time.sleep(0.01)
    running.interrupt()
    running.wait_for("finishing the trials in flight")
    running.interrupt()
    while any(sum(1 for _ in folder.iterdir()) == 30_000 for folder in places.glob("bakeoff-place-*/work/many")):
        assert running.process.poll() is None, running.seen
    running.interrupt()
    assert running.end() == 130, running.seen
    assert "Traceback" not in running.seen
    assert "Exception" not in running.seen
