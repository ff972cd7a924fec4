"""Test which of our processes others may look into."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this setting")

BY_COMMAND = """
import sys
sys.argv = ["bakeoff", *sys.argv[1:]]
try:
    from bakeoff.cli.main import main
    main()
except SystemExit:
    pass
loaded = "ctypes" in sys.modules
import ctypes
print("dumpable", ctypes.CDLL(None).prctl(3), "loaded", loaded, file=sys.stderr)
"""
BY_RUN = """
import asyncio, ctypes, sys
from bakeoff.engine.run import run
from bakeoff.plan import Plan

async def main():
    try:
        async for _ in run(Plan.model_construct()): pass
    except Exception:
        pass

asyncio.run(main())
print("dumpable", ctypes.CDLL(None).prctl(3), file=sys.stderr)
"""


def dumpable_after(program: str, *arguments: str, **environment: str) -> str:
    env = {**os.environ, "BAKEOFF_DUMPABLE": "", **environment}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    return done.stderr.strip().splitlines()[-1]


def test_a_command_closes_our_process_before_it_does_anything(tmp_path: os.PathLike[str]) -> None:
    assert dumpable_after(BY_COMMAND, "runs", "list", "--results", str(tmp_path)).startswith("dumpable 0")


def test_a_run_from_python_closes_our_process() -> None:
    assert dumpable_after(BY_RUN) == "dumpable 0"


def test_help_starts_nothing_and_pays_nothing_for_it() -> None:
    assert dumpable_after(BY_COMMAND, "--help") == "dumpable 1 loaded False"


def test_a_debugger_is_let_in_on_request(tmp_path: os.PathLike[str]) -> None:
    said = dumpable_after(BY_COMMAND, "runs", "list", "--results", str(tmp_path), BAKEOFF_DUMPABLE="1")
    assert said.startswith("dumpable 1")
