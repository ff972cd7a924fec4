"""The Containerfile and the dev container, as far as they can be tried without images of others."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from sysconfig import get_path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
LINES = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text("utf-8")).splitlines()
COPIED = [line.split()[1:-1] for line in LINES if line.startswith("COPY ") and "--from" not in line]
RUNS = [line.removeprefix("RUN ") for line in LINES if line.startswith("RUN ")]


def sh(command: str, folder: Path) -> str:
    done = subprocess.run(["sh", "-ec", command], cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def the_run(word: str) -> str:
    [found] = [command for command in RUNS if word in command]
    return found


@pytest.mark.parametrize("command", RUNS, ids=lambda command: command.split()[0])
def test_a_command_of_the_image_has_no_mistake_that_shellcheck_knows(command: str) -> None:
    program = Path(sys.executable).with_name("shellcheck")
    words = [str(program), "--shell=sh", "-"]
    done = subprocess.run(words, input=command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_is_copied_into_the_image_is_enough_to_install_bakeoff(tmp_path: Path) -> None:
    image = tmp_path / "bakeoff"
    image.mkdir()
    assert COPIED
    for name in (name for names in COPIED for name in names):
        source = ROOT / name
        shutil.copytree(source, image / name) if source.is_dir() else shutil.copy(source, image)
    sh(f"{sys.executable} -m venv --without-pip {tmp_path / 'python'}", tmp_path)
    [site] = (tmp_path / "python").glob("lib/python*/site-packages")
    (site / "installed.pth").write_text(get_path("purelib"))  # what is required, without network and minutes
    pip = f"{sys.executable} -m pip --python {tmp_path / 'python'} install --no-deps --no-build-isolation"
    sh(the_run("pip install").replace(" /bakeoff", f" {image}").replace("python -m pip install", pip), image)
    assert not image.exists(), "the sources do not stay in the image"
    assert (site / "bakeoff/bundled/components").is_dir()
    assert re.search(r"\d+\.\d+", sh(f"{tmp_path / 'python/bin/bakeoff'} --version", tmp_path))


def test_the_image_asks_for_extras_that_there_are() -> None:
    named = re.search(r'"\.\[(.+)\]"', the_run("pip install"))
    assert named
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(named[1].split(",")) <= project["optional-dependencies"].keys()


def test_the_links_of_the_image_make_npm_work(tmp_path: Path, needs_program: Callable[[str], str]) -> None:
    npm = Path(needs_program("npm")).resolve().parents[1]
    if not (npm / "bin/npm-cli.js").is_file():
        pytest.skip("npm is not installed as in the images of Node")
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/node_modules").symlink_to(npm.parent)
    sh(the_run("npm-cli.js").replace("/usr/local", str(tmp_path)), tmp_path)
    for name in ("npm", "npx"):
        assert re.match(r"\d+\.", sh(f"node {tmp_path / 'bin' / name} --version", tmp_path))


def test_the_dev_container_calls_what_there_is() -> None:
    created = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))["postCreateCommand"]
    script, _, target = created.partition(" && ")
    assert (ROOT / script.removeprefix("sh ")).is_file()
    sh(f"{target} --dry-run", ROOT)
