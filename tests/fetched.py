"""Packages of npm's that tests use as they are published: fetched once into the cache, for every process and run."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from bakeoff._kernel.environment import cache_folder

_OPTIONS = ("--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
_SECONDS = 240.0


def fetch_package(package: str) -> Path:
    """The `node_modules` that has it, given as `name@1.2.3`. Whoever comes first installs it, the others wait."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"{package} comes by npm, which is not here: install Node.js")
    kept = cache_folder() / "tests" / package.replace("/", "_")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_name(f"{kept.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / "node_modules").is_dir():
            _install(npm, package, kept)
    return kept / "node_modules"


def _install(npm: str, package: str, kept: Path) -> None:
    """Beside its place and then renamed: nobody sees half of it."""
    with tempfile.TemporaryDirectory(prefix=".new-", dir=kept.parent) as beside:
        command = [npm, "install", *_OPTIONS, f"--prefix={beside}", package]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, env={**os.environ}
        )
        assert done.returncode == 0, f"{package} cannot be fetched: {done.stderr[-2000:]}"
        Path(beside).chmod(0o755)
        Path(beside).rename(kept)
        Path(beside).mkdir()  # which is then removed
