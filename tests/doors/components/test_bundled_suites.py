"""The suites that travel with the package."""

import subprocess
from collections.abc import Callable

import pytest

Bakeoff = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.slow
def test_every_bundled_suite_is_fit_for_use(bakeoff: Bakeoff, needs_program: Callable[[str], str]) -> None:
    needs_program("node")
    done = bakeoff("verify")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "18 of 18 suites are fit for use" in done.stdout
