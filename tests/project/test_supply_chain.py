"""Nothing is installed that is not pinned, down to the bytes of its files."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"(?m)^([a-z0-9-]+)(?:\[[^\]]*\])?==(\S+)(?: ; ([^\\]+))? \\\n((?:    --hash=\S+(?: \\)?\n)+)")


FILES = ["constraints.txt", "constraints-demo.txt"]


def pins(file: str = "constraints.txt") -> dict[str, str]:
    """The lines of each pinned package."""
    return {match[1]: match[0] for match in PIN.finditer((ROOT / file).read_text("utf-8"))}


@pytest.mark.parametrize("file", FILES)
def test_every_constraint_is_an_exact_version_with_hashes(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    rest = PIN.sub("", text)
    assert [line for line in rest.splitlines() if not line.startswith("#")] == []
    hashes = re.findall(r"--hash=(\S+)", text)
    assert hashes
    assert [each for each in hashes if not re.fullmatch(r"sha256:[0-9a-f]{64}", each)] == []


def test_everything_that_the_project_names_is_pinned() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    named = re.findall(r'(?m)^(?:\s+|(?:local|otel|bench|requires) = \[.*?)"([A-Za-z][^"]*>=[^"]*)"', project)
    assert len(named) > 40
    assert {canonicalize_name(Requirement(each).name) for each in named} <= set(pins())


def test_the_demo_installs_a_part_of_what_development_does_and_no_tools() -> None:
    texts = [(ROOT / file).read_text("utf-8") for file in FILES]
    development, demo = ({match.group(1, 2) for match in PIN.finditer(text)} for text in texts)
    assert demo < development
    assert not {"mypy", "ruff", "playwright", "ray"} & set(pins("constraints-demo.txt"))


@pytest.mark.parametrize(("target", "file"), [("setup", FILES[0]), ("demo", FILES[1])])
def test_setup_installs_by_the_pins(target: str, file: str) -> None:
    done = subprocess.run(["make", "-n", "-B", target], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"install\.py (.*)", done.stdout) == [f"{file} ."]
    assert not re.search(r"pip\s.*install", done.stdout)


@pytest.fixture
def empty_environment(tmp_path: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv" / "bin" / "python"


def installing(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `scripts/install.py` where only the wheels of a folder can be had."""
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull, "PATH": os.defpath}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    command = [str(python), str(ROOT / "scripts" / "install.py"), *words]
    return subprocess.run(command, env={**kept, **offline}, capture_output=True, text=True, check=False)


def test_what_was_exchanged_in_the_registry_stops_the_setup_and_is_named(
    tmp_path: Path, empty_environment: Path
) -> None:
    wheel(tmp_path, "idna", pins()["idna"].split("==")[1].split()[0])
    wanted = tmp_path / "wanted.txt"
    wanted.write_text(pins()["idna"])
    done = installing(empty_environment, tmp_path, str(wanted))
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert "idna" in done.stderr


def wheel(folder: Path, name: str, version: str) -> None:
    """A wheel that a registry could hand out under the name of another."""
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", "print('not what you wanted')\n")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")


@pytest.mark.parametrize("checked", [True, False])
def test_a_file_that_was_exchanged_in_the_registry_is_not_installed(tmp_path: Path, checked: bool) -> None:
    version = re.match(r"idna==(\S+)", pins()["idna"])
    assert version
    wheel(tmp_path, "idna", version[1])
    wanted = tmp_path / "wanted.txt"
    wanted.write_text(pins()["idna"] if checked else f"idna=={version[1]}\n")
    command = [sys.executable, "-m", "pip", "install", "--target", str(tmp_path / "there"), "-r", str(wanted)]
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")} | offline
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode != 0, (tmp_path / "there" / "idna.py").exists()) == (checked, not checked)
    assert ("DO NOT MATCH THE HASHES" in done.stderr) == checked


def test_locked_packages_of_node_have_hashes_and_no_addresses() -> None:
    found = sorted((ROOT / "src" / "bakeoff" / "toolchains").glob("*/package.json"))
    assert len(found) == 2
    for package in found:
        named = json.loads(package.read_text("utf-8"))["dependencies"]
        locked = json.loads(package.with_name("package-lock.json").read_text("utf-8"))["packages"]
        assert locked.pop("")["dependencies"] == named
        assert [name for name, each in locked.items() if not each["integrity"].startswith("sha512-")] == []
        assert [name for name, each in locked.items() if "resolved" in each] == []
