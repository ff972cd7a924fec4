"""The wheel has everything that the package reads at run time."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("bakeoff-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel_names: set[str]) -> None:
    source = ROOT / "src"
    package = {
        path.relative_to(source).as_posix()
        for path in (source / "bakeoff").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "bakeoff/py.typed" in package
    assert package - wheel_names == set()


@pytest.mark.slow
def test_the_wheel_carries_the_licence(wheel_names: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_names)


@pytest.mark.slow
def test_the_wheel_holds_nothing_else(wheel_names: set[str]) -> None:
    assert [name for name in wheel_names if not name.startswith(("bakeoff/", "bakeoff-"))] == []
