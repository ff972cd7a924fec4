"""Cases that take too long, and sessions that end early."""

import signal
import subprocess
import sys

import pytest

from .small_project import PLUGIN, SmallProject, project

pytestmark = pytest.mark.journey

pytest_plugins = ["pytester"]
__all__ = ["project"]


TIMEOUTS = """
async def at_once(given):  # without a thread, whose start may take longer than the time of a scorer
    return right(given)

cancelled = []

@eval_suite(data=rows("slow", "quick"), scorers=[at_once], timeout=1{options})
{kind} test_it(case):
    if case.input == "slow":
        {wait}
    return f"<{{case.input}}>"
"""


@pytest.mark.parametrize(
    ("kind", "wait", "options"),
    [
        ("async def", "await asyncio.sleep(60)", ""),
        ("def", "threading.Event().wait(60)", ""),
        ("async def", "await asyncio.sleep(60)", ", threshold=None"),
        ("async def", "time.sleep(1.5)", ""),  # it blocks, so that nobody can stop it in time
    ],
)
def test_a_case_that_takes_too_long_is_reported_in_time(
    project: SmallProject, kind: str, wait: str, options: str
) -> None:
    project.write(TIMEOUTS.format(kind=kind, wait=wait, options=options))
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    assert "not finished after 1 s" in seen.text
    assert "CancelledError" not in seen.text
    assert seen.outcome("slow").score == 0.0


STOPPING = """
@eval_suite(data=rows(*range(40)), scorers=[right], concurrency=8)
async def test_it(case):
    with open("began.txt", "a") as file:
        file.write(f"{case.input}\\n")
    try:
        if case.input >= 3:
            await asyncio.sleep(60)
    except asyncio.CancelledError:
        with open("cancelled.txt", "a") as file:
            file.write(f"{case.input}\\n")
        raise
    return "<0>"
"""


@pytest.mark.parametrize(("option", "failed"), [("-x", 1), ("--maxfail=2", 2)])
def test_stopping_early_cancels_what_was_not_reported(project: SmallProject, option: str, failed: int) -> None:
    project.write(STOPPING)
    seen = project.run_apart(option)
    assert seen.counts() == {"passed": 1, "failed": failed}
    began = (project.path / "began.txt").read_text().split()
    cancelled = (project.path / "cancelled.txt").read_text().split()
    assert sorted(set(began) - {"0", "1", "2"}, key=int) == sorted(cancelled, key=int)
    assert len(began) < 40
    assert seen.result.stderr.str() == ""
    assert "never awaited" not in seen.text


def test_ctrl_c_cancels_what_was_not_reported(project: SmallProject) -> None:
    project.write(STOPPING.replace("case.input >= 3", "case.input >= 1"))
    command = [sys.executable, "-X", "dev", "-W", "error", "-m", "pytest", *PLUGIN, "--eval-no-record"]
    process = subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    printed = []
    for line in process.stdout:  # the first case is reported when the others are being waited for
        printed.append(line)
        if "PASSED" in line or "1.00" in line or "." in line.partition("test_it.py")[2]:
            break
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    text = "".join(printed) + rest
    assert process.returncode == 2
    assert "KeyboardInterrupt" in text
    assert "never awaited" not in text
    assert "Task was destroyed" not in text
    assert "ResourceWarning" not in text
    began = set((project.path / "began.txt").read_text().split()) - {"0"}
    assert began == set((project.path / "cancelled.txt").read_text().split())
