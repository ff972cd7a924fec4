"""By its fingerprint `make check` knows that the tests have seen what is here, and need not run again."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "fingerprint.sh"


def fingerprint(folder: Path) -> str:
    return subprocess.run(["sh", SCRIPT, "src"], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_it_changes_with_every_file_and_not_with_what_tools_keep(tmp_path: Path) -> None:
    file = tmp_path / "src" / "deep" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text("one")
    first = fingerprint(tmp_path)
    for cache in ("__pycache__", ".ruff_cache", ".mypy_cache"):
        (file.parent / cache).mkdir()
        (file.parent / cache / "kept").write_text("x")
    assert fingerprint(tmp_path) == first
    file.write_text("two")
    assert fingerprint(tmp_path) != first
    file.write_text("one")
    assert fingerprint(tmp_path) == first
    file.rename(file.with_name("b.py"))
    assert fingerprint(tmp_path) != first
