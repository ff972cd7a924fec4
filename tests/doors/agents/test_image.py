"""`bakeoff agents image build`: what an engine is told, and what people are told where there is none."""

import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from bakeoff.doors.agents.agents import CONTAINERFILE, known_agents, plan_image
from bakeoff.errors import UsageError

from ...warm_bakeoff import Bakeoff

pytestmark = pytest.mark.full

NO_ENGINE = {"PATH": "/nowhere"}


@pytest.fixture
def build(bakeoff: Bakeoff, monkeypatch: pytest.MonkeyPatch) -> Bakeoff:
    """Calls `bakeoff agents image build …` in the test's folder and gives what came out."""
    monkeypatch.delenv("BAKEOFF_DOCKER", raising=False)
    return partial(bakeoff, "agents", "image", "build")


def engine(folder: Path, name: str, exit_code: int) -> None:
    """A program of the engine's name that writes down what it was told."""
    folder.mkdir()
    told = folder / "told"
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\nopen({str(told)!r}, 'w').write(chr(10).join(sys.argv[1:]))\n")
    with program.open("a") as file:
        file.write(f"sys.exit({exit_code})\n")
    program.chmod(0o755)


def test_a_dry_run_shows_the_command_and_the_containerfile_and_needs_no_engine(build: Bakeoff) -> None:
    done = build("--dry-run", "--agent", "claude", "--agent", "aider", "--tag", "mine:1", **NO_ENGINE)
    assert done.returncode == 0, done.stderr
    line, _, rest = done.stdout.partition("\n\n")
    words = shlex.split(line)
    assert words[:2] == ["docker", "build"]
    assert words[words.index("--tag") + 1] == "mine:1"
    assert "NPM_AGENTS=@anthropic-ai/claude-code" in words
    assert "PYTHON_AGENTS=aider=aider-chat" in words
    assert rest == CONTAINERFILE.read_text()


def test_the_engine_can_be_chosen_and_all_that_registries_have_is_the_default(build: Bakeoff) -> None:
    done = build("--dry-run", "--engine", "podman", **NO_ENGINE)
    words = shlex.split(done.stdout.partition("\n\n")[0])
    assert words[0] == "podman"
    [npm] = [word for word in words if word.startswith("NPM_AGENTS=")]
    assert {"@openai/codex", "opencode-ai"} <= set(npm.removeprefix("NPM_AGENTS=").split())
    assert "goose" not in done.stdout.partition("\n\n")[0]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "docker or podman is not installed"),
        (("--engine", "podman"), "`apt-get install podman`"),
        (("--engine", "lxc"), "'lxc' is not one of 'docker', 'podman'"),
        (("--agent", "goose"), "--agent goose: it is installed by script"),
        (("--agent", "nobody"), "'nobody' is not one of claude"),
        (("--tag", "--privileged"), "is not the name of an image"),
    ],
)
def test_what_cannot_be_built_is_told_in_a_sentence(build: Bakeoff, words: tuple[str, ...], why: str) -> None:
    done = build(*words, **NO_ENGINE)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_the_engine_is_told_what_the_dry_run_shows_and_how_to_use_the_image_follows(
    build: Bakeoff, tmp_path: Path
) -> None:
    engine(tmp_path / "bin", "podman", 0)
    path = str(tmp_path / "bin")
    done = build("--engine", "podman", "--agent", "codex", PATH=path)
    assert done.returncode == 0, done.stderr
    shown = build("--dry-run", "--engine", "podman", "--agent", "codex", PATH=path).stdout.partition("\n\n")[0]
    assert (tmp_path / "bin" / "told").read_text().split("\n") == shlex.split(shown)[1:]
    assert "BAKEOFF_DOCKER=podman BAKEOFF_DOCKER_IMAGE=bakeoff-agents" in done.stderr


def test_an_engine_that_fails_leaves_it_undecided(build: Bakeoff, tmp_path: Path) -> None:
    engine(tmp_path / "bin", "docker", 7)
    done = build("--agent", "codex", PATH=str(tmp_path / "bin"))
    assert done.returncode == 3
    assert "exit code 7" in done.stderr


@pytest.mark.parametrize("package", ["x; rm -rf .", "--global", "$(id)", "a b"])
def test_a_package_that_a_shell_would_read_as_more_is_refused(tmp_path: Path, package: str) -> None:
    mine = {"name": "mine", "defaultProvider": "p", "install": {"method": "npm", "package": package}, "command": ["x"]}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(mine))
    with pytest.raises(UsageError, match="is not the name of a package"):
        plan_image(known_agents([file]), ["mine"])


def shell_steps() -> list[str]:
    joined = CONTAINERFILE.read_text().replace("\\\n", " ")
    return re.findall(r"^RUN (.*)$", joined, flags=re.MULTILINE)


def test_every_step_of_the_containerfile_is_a_shells() -> None:
    steps = shell_steps()
    assert len(steps) == 5
    for step in steps:
        done = subprocess.run(["sh", "-n", "-c", step], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_image_has_the_test_command_that_agents_are_told() -> None:
    assert any(step.split()[-1] == "pytest" and "pip install" in step for step in shell_steps())


def test_a_python_agent_gets_an_environment_of_its_own_and_its_program_is_on_the_path(tmp_path: Path) -> None:
    """The step itself, with a package that lies in a folder and needs nothing."""
    source = tmp_path / "hello"
    (source / "hello_agent").mkdir(parents=True)
    (source / "hello_agent" / "__init__.py").write_text("def main() -> None:\n    print('hello')\n")
    (source / "backend.py").write_text(BACKEND)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (tmp_path / "bin").mkdir()
    env = {
        "PYTHON_AGENTS": f"hello={source}",
        "ENVIRONMENTS": str(tmp_path / "agents"),
        "PROGRAMS": str(tmp_path / "bin"),
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    [step] = [step for step in shell_steps() if "PYTHON_AGENTS" in step]
    done = subprocess.run(["sh", "-c", step], env={**os.environ, "PATH": path, **env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([tmp_path / "bin" / "hello"], capture_output=True, text=True, check=True).stdout
    assert said == "hello\n"


BACKEND = """
import zipfile



def build_wheel(folder, settings=None, metadata=None):
    name, info = "hello-1.0-py3-none-any.whl", "hello-1.0.dist-info"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.write("hello_agent/__init__.py")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: hello\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\\nhello = hello_agent:main\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
