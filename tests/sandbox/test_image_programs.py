"""Test what an image is asked about its programs before a trial runs in it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.errors import InfraError
from bakeoff.protocols import Sandbox
from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.subjects.agent_definition import AgentDefinition
from bakeoff.subjects.agent_program import is_installed, try_to_start
from bakeoff.subjects.command_agent import CommandAgent
from bakeoff.toolchains.vitest import chromium_in

from ..doors.agents.small_tracks import DOUBLE, write_track

pytestmark = pytest.mark.full


@pytest.fixture
def image(sandbox_on: Callable[[str], Sandbox]) -> DockerSandbox:
    sandbox = sandbox_on("docker")
    assert isinstance(sandbox, DockerSandbox)
    return sandbox


def definition(program: str) -> AgentDefinition:
    install = {"method": "npm", "package": "x"}
    told = {"name": "mine", "defaultProvider": "p", "install": install, "command": [program]}
    return AgentDefinition.model_validate({**told, "version": {"command": [program, "--version"]}})


def test_an_agent_is_looked_for_in_the_image_and_not_on_this_machine(image: DockerSandbox) -> None:
    assert is_installed("python3", image)
    assert not is_installed("git", image)
    assert is_installed("git")


async def test_its_version_is_that_of_the_image(image: DockerSandbox) -> None:
    assert ((await try_to_start(definition("python3"), image)).version or "").startswith("Python 3.")
    assert (await try_to_start(definition("git"), image)).version is None


def test_what_the_image_lacks_is_told_before_the_run_with_the_command_that_puts_it_there(image: DockerSandbox) -> None:
    def agent(program: str) -> CommandAgent:
        return CommandAgent(definition(program), "p", None, {}, sandbox=lambda: image)

    assert agent("python3").lacks() == []
    assert agent("git").lacks() == ["`git` is not in the image: `bakeoff agents image build --agent mine`"]


async def test_an_image_without_chromium_is_told_before_a_suite_runs_in_it(image: DockerSandbox) -> None:
    with pytest.raises(InfraError, match=r"has no Chromium.*use an image with the package `chromium`"):
        await chromium_in(image)


AGENT = """\
name: inside
defaultProvider: nobody
install: {method: npm, package: inside}
version: {command: [python3, --version]}
command: [python3, -c, "open('double.py', 'w').write('def double(number): return 2 * number')"]
"""


def test_an_agent_of_the_image_solves_an_exercise_and_is_graded_in_it(image: DockerSandbox, tmp_path: Path) -> None:
    track = write_track(tmp_path / "track", double=DOUBLE)
    (tmp_path / "inside.yaml").write_text(AGENT)
    words = ["agents", "run", "--exercises", str(track), "--agent", "inside", "--agent-file", "inside.yaml"]
    words += ["--sandbox", "docker", "--no-open"]
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", *words],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    latest = json.loads((tmp_path / "results" / "latest.json").read_text())
    assert latest["summary"]["successRate"] == 100
    assert latest["metadata"]["version"].startswith("Python 3.")
