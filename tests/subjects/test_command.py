"""A program of the user as a subject: it gets the prompt, and what it prints is the answer."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.imports import command_revision
from bakeoff.doors.eval.door import EvalDoor
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Record
from bakeoff.sandbox.bubblewrap import find_bubblewrap
from bakeoff.subjects.command import CommandSubject

CarryOut = Callable[..., Awaitable[list[Record]]]
SHOUT = "import sys\nprint(sys.stdin.read().upper())\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(*argv: str, prompt: str = "hello", limits: Limits | None = None, **options: Any) -> Plan:
    spec = SubjectSpec(kind="command", name="program", options={"argv": list(argv), **options})
    case = Case(id="c", prompt=prompt, expected="HELLO", limits=limits or Limits())
    return Plan(
        name="p",
        cases=(case,),
        subjects=(spec,),
        scorers=(ScorerSpec(kind="exact"),),
        door="eval",
        settings={"file": "x"},
    )


async def record_of(made: Plan, carry_out: CarryOut, **options: Any) -> Record:
    registry = EvalDoor().registry(made, RunOptions())
    records = await carry_out(made, registry=registry, **options)
    return records[0]


async def test_the_prompt_is_on_stdin_and_stdout_is_the_answer(here: Path, carry_out: CarryOut):
    (here / "shout.py").write_text(SHOUT)
    record = await record_of(plan(sys.executable, "shout.py", sandbox="none"), carry_out)
    assert record.verdict == "pass", record


async def test_the_prompt_is_an_argument_where_it_should_be(carry_out: CarryOut):
    for words in (["echo"], ["echo", "-n", "{prompt}"]):
        record = await record_of(plan(*words, prompt="HELLO", input="argument", sandbox="none"), carry_out)
        assert record.verdict == "pass"


async def test_a_program_in_the_sandbox_reads_its_folder_and_neither_keys_nor_variables(
    here: Path, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
):
    if find_bubblewrap()[0] is None:
        pytest.skip("bwrap is not here: apt-get install bubblewrap")
    monkeypatch.setenv("MY_API_KEY", "abcdefgh-secret")
    monkeypatch.setenv("GIVEN", "given")
    (here / ".env").write_text("OTHER=1")
    (here / "look.py").write_text(
        "import os, pathlib\n"
        "env = pathlib.Path('.env')\n"
        "print(os.environ.get('MY_API_KEY'), os.environ.get('VALUE'), env.stat().st_size if env.exists() else 0)\n"
        "try:\n    pathlib.Path('new.txt').write_text('x')\nexcept OSError:\n    print('read-only')\n"
    )
    record = await record_of(plan(sys.executable, "look.py", env={"VALUE": "${GIVEN}"}), carry_out, sandbox="bwrap")
    assert record.transcript is not None, record
    assert record.transcript.output == "None given 0\nread-only"
    assert not (here / "new.txt").exists()


async def test_an_exit_code_is_the_subjects_failure_and_a_missing_program_is_not(carry_out: CarryOut):
    failed = await record_of(plan("sh", "-c", "echo no >&2; exit 3", sandbox="none"), carry_out)
    assert (failed.verdict, failed.failure and failed.failure.message) == ("fail", "sh: exit code 3: no")
    missing = await record_of(plan("no-such-program-at-all", sandbox="none"), carry_out)
    assert missing.verdict == "infra"


async def test_a_program_that_hangs_is_ended_with_all_that_it_started(here: Path, carry_out: CarryOut):
    made = plan("sh", "-c", "sleep 600 & echo $! > child; wait", sandbox="none", limits=Limits(attempt_seconds=1))
    record = await record_of(made, carry_out)
    assert record.verdict == "timeout"
    child = int((here / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z" or not _is_ours(child)


@pytest.mark.parametrize(("stream", "kept"), [(1, 64 * 1024), (2, 0)])
async def test_a_program_that_writes_without_end_is_ended_at_the_usual_limit(
    stream: int, kept: int, carry_out: CarryOut
):
    endless = f"yes | head -c 3000000 >&{stream}; sleep 600"
    limits = Limits(attempt_seconds=60, output_kb=64)
    record = await record_of(plan("sh", "-c", endless, sandbox="none", limits=limits), carry_out)
    assert record.verdict == "fail"
    assert record.failure is not None
    assert record.failure.message.startswith("sh: ended by the output limit")
    assert record.transcript is not None
    assert len(str(record.transcript.output)) == kept


async def test_a_program_need_not_read_its_input(carry_out: CarryOut):
    made = plan("sh", "-c", "exec <&-; echo HELLO", prompt="x" * 1_000_000, sandbox="none")
    record = await record_of(made, carry_out)
    assert record.verdict == "pass", record.failure


def _is_ours(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return b"sleep" in Path(f"/proc/{process}/cmdline").read_bytes()


def test_a_command_loads_nothing_of_mcp() -> None:
    code = "import sys, bakeoff.doors.eval.config, bakeoff.subjects.command; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_edited_script_is_another_subject(here: Path):
    (here / "a.py").write_text("1")
    before = command_revision(["python", "a.py"], here)
    (here / "a.py").write_text("2")
    assert command_revision(["python", "a.py"], here) != before
    assert command_revision(["python", "-c", "1"], here) == ""


def test_a_variable_that_is_not_set_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    spec = SubjectSpec(kind="command", name="p", options={"argv": ["cat"], "env": {"A": "${NOT_THERE}"}})
    with pytest.raises(UsageError, match=r"\$\{NOT_THERE\} is not set: set NOT_THERE"):
        CommandSubject.from_spec(spec)
