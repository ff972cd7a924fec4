"""A subject cannot turn its failure into a trial that is not counted."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Needs, Task
from bakeoff.record import Record, Transcript

from .probes import Probe, registry_of

CarryOut = Callable[..., Awaitable[list[Record]]]
ANSWER = "answer.py"
LIMITS = Limits(attempt_seconds=120, score_seconds=120, disk_mb=64, memory_mb=512)

# What an attempt does with its own folder before another command runs in it.
TO_THE_FOLDER = {
    "locks it": "import os; os.chmod('.', 0)",
    "locks its HOME": "import os; os.chmod(os.environ['HOME'], 0)",
    "nests too deep": "import os\nfor _ in range(3000):\n os.mkdir('d'); os.chdir('d')",
    "names files in bytes": "open(b'\\xff\\xfe', 'w').close()",
    "hands in a pipe": f"import os; os.unlink('{ANSWER}'); os.mkfifo('{ANSWER}')",
    "hands in a loop": f"import os; os.unlink('{ANSWER}'); os.symlink('{ANSWER}', '{ANSWER}')",
    "hands in a folder": f"import os; os.unlink('{ANSWER}'); os.mkdir('{ANSWER}')",
    "hands in a terabyte": f"open('{ANSWER}', 'wb').truncate(1 << 40)",
    "hands in no text": f"open('{ANSWER}', 'wb').write(b'\\xed\\xa0\\x80')",
    "removes it": "import os, shutil; d = os.getcwd(); shutil.rmtree(d, ignore_errors=True)",
    "replaces it": "import os; d = os.getcwd(); os.rename(d, d + '2'); os.symlink('/etc', d)",
    "kills its parent": "import os; os.kill(os.getppid(), 9)",
    "leaves a daemon": "import os, time\nif not os.fork():\n os.setsid(); time.sleep(600)",
}

# What an answer does when the tests import it.
TO_THE_GRADER = {
    "segfaults": "import ctypes; ctypes.string_at(0)",
    "overflows the stack": "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "closes every descriptor": "import os; os.closerange(0, 256)",
    "locks the folder": "import os; os.chmod('.', 0)",
    "kills everything": "import os; os.kill(-1, 9)",
    "kills the parent": "import os; os.kill(os.getppid(), 9)",
    "is no Python": "x = " + "(" * 5000,
    "has a number of 6000 digits": "x = " + "9" * 6000,
}


def a_plan() -> Plan:
    case = Case(
        id="c",
        prompt="",
        files={ANSWER: "x = 1\n"},
        hidden={"test_it.py": "import answer\nassert answer.x == 'right'\n"},
        collect=(ANSWER,),
        limits=LIMITS,
    )
    options = {"argv": ["python3", "test_it.py"], "seconds": 60, "junit": "report.xml"}
    return Plan(
        name="p",
        cases=(case,),
        subjects=(SubjectSpec(kind="probe", name="s"),),
        scorers=(ScorerSpec(kind="command", options=options),),
    )


async def verdict_of(code: str, carry_out: CarryOut) -> Record:
    async def attempt(task: Task) -> Transcript:
        await task.workspace.run(("python3", "-c", code), seconds=60)
        done = await task.workspace.run(("python3", "-c", "print('again')"), seconds=60)
        return Transcript(output=done.stdout.decode(errors="replace"))

    probe = Probe(attempt, needs=Needs(workspace=True))
    [record] = await carry_out(a_plan(), registry=registry_of(probe))
    return record


@pytest.mark.parametrize("way", TO_THE_FOLDER)
async def test_what_a_subject_does_to_its_folder_is_its_own_failure(way: str, carry_out: CarryOut) -> None:
    record = await verdict_of(TO_THE_FOLDER[way], carry_out)
    assert record.verdict in ("fail", "timeout"), record.failure
    assert record.value == 0.0


@pytest.mark.parametrize("way", TO_THE_GRADER)
async def test_what_an_answer_does_to_its_tests_is_its_own_failure(way: str, carry_out: CarryOut) -> None:
    written = f"open('{ANSWER}', 'w').write({TO_THE_GRADER[way]!r})"
    record = await verdict_of(written, carry_out)
    assert record.verdict in ("fail", "timeout"), record.failure
    assert record.value == 0.0


async def test_a_folder_that_is_unlocked_is_not_the_target_of_a_link(tmp_path: Path, carry_out: CarryOut) -> None:
    """As an ordinary user, a subject can put a link in the place of its folder."""
    target = tmp_path / "of someone"
    target.mkdir()
    target.chmod(0o500)
    code = f"import os; d = os.getcwd(); os.rename(d, d + '2'); os.symlink({str(target)!r}, d)"
    await verdict_of(code, carry_out)
    assert target.stat().st_mode & 0o777 == 0o500


async def test_an_output_that_a_pattern_takes_forever_on_has_no_match(carry_out: CarryOut) -> None:
    async def attempt(_: Task) -> str:
        return "a" * 5000 + "!"

    plan = a_plan().with_changes(
        cases=(Case(id="c", prompt="", expected="(a+)+$", limits=Limits(score_seconds=4)),),
        scorers=(ScorerSpec(kind="regex"),),
    )
    [record] = await carry_out(plan, registry=registry_of(Probe(attempt)))
    assert record.verdict == "fail", record.failure
    assert "was stopped after 2 s" in record.scores[0].reason
