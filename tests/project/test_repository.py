"""Test what must hold of the files of the project, whatever the code does."""

import configparser
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def dotted(*parts: str) -> str:
    """A pattern for a host name that is not itself that host name."""
    return re.escape(".".join(parts))


REGISTRIES = [
    dotted("pypi", "org"),
    dotted("pythonhosted", "org"),
    dotted("registry", "npmjs", "org"),
    dotted("registry", "yarnpkg", "com"),
    dotted("index", "docker", "io"),
    dotted("crates", "io"),
]
# Places that exist on the machine of whoever wrote the file, and nowhere else.
MACHINE_PATHS = [
    r"/" + r"Users/\w+/",
    r"/" + r"home/(?!user/|agent/)\w+/",
    r"/" + r"root/\.(?:pyenv|cache|local|config)\b",
    r"/" + r"work/(?:main|shared|\.library)\b",
    r"/" + r"opt/pypi",
]
PIP_SETTINGS = [r"--(?:extra-)?" + r"index-url", r"--find" + r"-links", r"--trusted" + r"-host"]


@pytest.fixture(scope="module")
def files(needs_program: Callable[[str], str]) -> list[Path]:
    """Every file that is, or would be, in the repository."""
    command = [needs_program("git"), "-c", "safe.directory=*", "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is not a git checkout: git clone the project")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize("pattern", [*REGISTRIES, *MACHINE_PATHS, *PIP_SETTINGS])
def test_no_file_names_a_registry_or_a_place_on_one_machine(pattern: str, files: list[Path]) -> None:
    found = []
    for path in files:
        text = path.read_text("utf-8", errors="replace")
        if match := re.search(pattern, text):
            found.append(f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}")
    assert found == []


def test_the_makefile_has_the_promised_targets_and_lists_them() -> None:
    promised = {"setup", "demo", "test", "check", "bench", "format", "wheel", "clean"}
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("make ")}
    assert promised <= listed


def test_continuous_integration_runs_the_command_of_the_readme_and_skips_nothing() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "\nmake test test-all\n" in script
    assert "BAKEOFF_NO_SKIP=1" in script
    assert "system-packages.sh --require" in script


def test_the_import_contracts_name_every_module_and_none_is_optional() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter", "utf-8")
    contracts = [config[name] for name in config.sections() if name.startswith("importlinter:contract:")]
    assert contracts
    assert all(contract["exhaustive"] == "True" for contract in contracts if contract["type"] == "layers")
    assert not [contract.name for contract in contracts if "(" in contract.get("layers", "")]


def test_hooks_come_from_this_repository_only() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert re.findall(r"repo:\s*(\S+)", text) == ["local"]
