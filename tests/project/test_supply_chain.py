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

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"(?m)^([a-z0-9-]+)==(\S+)(?: ; ([^\\]+))? \\\n((?:    --hash=\S+(?: \\)?\n)+)")


def pins() -> dict[str, str]:
    """The lines of each pinned package."""
    return {match[1]: match[0] for match in PIN.finditer((ROOT / "constraints.txt").read_text("utf-8"))}


def test_every_constraint_is_an_exact_version_with_hashes() -> None:
    text = (ROOT / "constraints.txt").read_text("utf-8")
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


def test_setup_checks_hashes_and_builds_with_what_it_has_installed() -> None:
    done = subprocess.run(["make", "-n", "-B", "setup"], cwd=ROOT, capture_output=True, text=True, check=True)
    installs = [line for line in done.stdout.splitlines() if re.search(r"pip .*install", line)]
    assert len(installs) == 2
    assert "--require-hashes -r constraints.txt" in installs[0]
    assert "--no-deps --no-build-isolation -e ." in installs[1]


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
