"""The wheel has everything that the package reads at run time, and needs nothing but what it names."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from sysconfig import get_paths

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
EXAMPLE = """
from bakeoff import TaskResult, ToolCall, describe_eval, eval_suite
from bakeoff.scorers import Contains, ToolCalls

async def ask(input, **row):                       # the application under test
    return TaskResult(result="4", tool_calls=[ToolCall(name="add", arguments={"a": 2, "b": 2})])

@eval_suite(data=[{"input": "Capital of France?", "expected": "Paris"}], scorers=[Contains()], threshold=0.8)
async def test_capitals(case):                     # one pytest item per row; its return value is what is scored
    return f"It is {'Paris' if 'France' in case.input else '?'}."   # str | TaskResult | a result object of a known SDK

test_sums = describe_eval("sums", data=[{"input": "2+2", "expected_tools": ["add"]}], task=ask, scorers=[ToolCalls()], threshold=None)

async def test_one(to_eval):
    await to_eval("What is 2+2?", expected="4", task=ask, scorer=Contains(), threshold=1.0)
    await to_eval("What is 2+2?", output="4", expected="4", scorer=Contains())      # a ready-made output
"""  # noqa: E501 - as the first page on evals has it


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.glob("bakeoff-*.whl")
    return found


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has the wheel and what its metadata require, and nothing else.

    What is required is linked from where it is installed already, so that this needs neither network nor minutes.
    """
    folder = tmp_path_factory.mktemp("fresh")
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    _run([sys.executable, "-m", "pip", "--python", str(folder), "install", "--no-deps", "--no-index", str(wheel)])
    places = get_paths(vars={"base": str(folder), "platbase": str(folder)})
    for path in {path for needed in _required("bakeoff") for path in _installed(needed)}:
        link = Path(places["purelib"]) / path.name
        if not link.exists():
            link.symlink_to(path)
    return folder / "bin"


def _required(name: str) -> Iterator[Distribution]:
    """Yield what pip would install with a distribution, without itself."""
    waiting, met = [Requirement(name)], set()
    while waiting:
        wanted = waiting.pop()
        if (wanted.name, *sorted(wanted.extras)) in met:
            continue
        met.add((wanted.name, *sorted(wanted.extras)))
        found = distribution(wanted.name)
        if wanted.name != name:
            yield found
        for each in map(Requirement, found.requires or ()):
            marker = each.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*wanted.extras, "")):
                waiting.append(each)


def _installed(found: Distribution) -> set[Path]:
    """The folders and files of a distribution that lie directly in `site-packages`."""
    tops = {Path(str(path)).parts[0] for path in found.files or ()}
    return {Path(str(found.locate_file(top))) for top in tops if top not in ("..", "__pycache__")}


def _run(command: list[str], **given: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV", "PYTEST"))
    }
    cwd = given.get("cwd")
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_wheel_holds_every_file_of_the_package(wheel_names: set[str]) -> None:
    source = ROOT / "src"
    package = {
        path.relative_to(source).as_posix()
        for path in (source / "bakeoff").rglob("*")
        if path.is_file() and not {"__pycache__", ".ruff_cache"} & set(path.parts)
    }
    assert "bakeoff/py.typed" in package
    assert package - wheel_names == set()


def test_the_same_sources_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    _run(build, cwd=str(ROOT))
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_source_distribution_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    _run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path)], cwd=str(ROOT))
    [source] = tmp_path.glob("bakeoff-*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / source.name.removesuffix(".tar.gz")
    _run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "made")],
        cwd=str(unpacked),
    )
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(tmp_path / "made" / wheel.name) as theirs:
        assert ours.namelist() == theirs.namelist()
        assert [name for name in ours.namelist() if ours.read(name) != theirs.read(name)] == []
    assert (unpacked / "SECURITY.md").is_file()


def test_the_bill_of_materials_lists_what_the_wheel_needs_and_is_always_the_same(wheel: Path) -> None:
    made = wheel.with_suffix(".cdx.json")
    texts = []
    for _ in range(2):
        _run([sys.executable, str(ROOT / "scripts" / "sbom.py"), str(wheel.parent)])
        texts.append(made.read_text("utf-8"))
    assert texts[0] == texts[1]
    bill = json.loads(texts[0])
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    own = bill["metadata"]["component"]
    assert own["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    listed = {each["name"]: each["version"] for each in bill["components"]}
    assert listed == {canonicalize_name(each.name): each.version for each in _required("bakeoff")}
    pins = re.findall(r"(?m)^([a-z0-9-]+)(?:\[[^\]]*\])?==([^ ]+)", (ROOT / "constraints.txt").read_text("utf-8"))
    assert set(listed.items()) <= set(pins)
    references = {own["bom-ref"], *(each["bom-ref"] for each in bill["components"])}
    assert {each["ref"] for each in bill["dependencies"]} == references
    assert {needed for each in bill["dependencies"] for needed in each["dependsOn"]} <= references


def test_the_wheel_carries_the_licence(wheel_names: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_names)


def test_the_wheel_carries_the_skill_for_coding_agents(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        skill = archive.read("bakeoff/bundled/skills/bakeoff/SKILL.md")
    assert skill == (ROOT / "docs" / "skills" / "bakeoff" / "SKILL.md").read_bytes()


def test_the_wheel_holds_nothing_else(wheel_names: set[str]) -> None:
    assert [name for name in wheel_names if not name.startswith(("bakeoff/", "bakeoff-"))] == []


def test_where_only_the_wheel_was_installed_the_first_eval_runs_as_it_is_written(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(EXAMPLE)
    shown = _run([str(fresh / "python"), "-m", "pytest", "-W", "error"], cwd=str(tmp_path)).stdout
    assert "test_example.py::test_capitals[Capital-of-France] 1.00 " in shown
    assert " 3 passed in " in shown
    listed = _run([str(fresh / "bakeoff"), "runs", "list"], cwd=str(tmp_path)).stdout
    assert "4/4" in listed


def test_nothing_of_the_development_tools_is_in_the_fresh_environment(fresh: Path) -> None:
    tools = ("xdist", "pytest_asyncio", "hypothesis", "pydantic_evals")
    code = f"import importlib.util; print([name for name in {tools} if importlib.util.find_spec(name)])"
    assert _run([str(fresh / "python"), "-c", code]).stdout.strip() == "[]"
