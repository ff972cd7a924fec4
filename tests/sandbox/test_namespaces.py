"""Namespaces of ordinary users. The test forks: Python itself may be closed to other users."""

import codecs
import os
import tempfile
from pathlib import Path

import pytest

from bakeoff.sandbox.supervisor.confinement import SHARED_MEMORY, can_own_ipc, own_ipc

SOMEBODY = 2_000_000_999


def report_of_child(folder: Path) -> str:
    codecs.lookup("ascii")  # loaded while it can be read
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
                os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
            possible = can_own_ipc()
            if possible:
                own_ipc([str(folder)])
                (folder / "written").touch()
            os.write(writing, f"{possible} {[path.name for path in Path(SHARED_MEMORY).iterdir()]}".encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def test_a_place_in_shared_memory_is_kept_when_the_rest_of_it_is_covered() -> None:
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as name, tempfile.NamedTemporaryFile(dir=SHARED_MEMORY):
        folder = Path(name)
        folder.chmod(0o777)
        said = report_of_child(folder)
        if said.startswith("False"):
            pytest.skip("user namespaces are not permitted here")
        assert said == f"True {[folder.name]}"
        assert (folder / "written").exists()
