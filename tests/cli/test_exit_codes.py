"""Test the exit codes of the command line when something unexpected happens."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from bakeoff import errors
from bakeoff.cli.main import app, main

error = getattr(errors, sys.argv.pop())

@app.command()
def break_down():
    raise error("the other side is gone")

main()
"""


@pytest.mark.parametrize(("error", "code"), [("InfraError", 3), ("UsageError", 2)])
def test_what_the_other_side_broke_is_undecided_and_not_the_users_mistake(error: str, code: int) -> None:
    command = [sys.executable, "-c", PROGRAM, "break-down", error]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (code, "error: the other side is gone\n")
