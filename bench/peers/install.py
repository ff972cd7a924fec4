"""Install each peer into an environment of its own, once, in the cache."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.environment import cache_folder

PYTHON_PEERS = {
    "pytest": "pytest==9.2.0",
    "pydantic-evals": "pydantic-evals==2.62.0",
    "inspect-ai": "inspect-ai==0.3.285",
    "deepeval": "deepeval==4.3.1",
}
NODE_PEERS = {
    "vitest-evals": ("vitest-evals@0.16.1", "vitest@4.1.12", "ai@5"),
    "promptfoo": ("promptfoo@0.123.1",),
}
_DONE = "installed.json"  # written last, so that an interrupted installation is repeated
_INSTALL = {
    True: ["bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"],
    False: ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"],
}


@dataclass(frozen=True, slots=True)
class Environment:
    """The folder that a peer is installed in, or the reason why it is missing."""

    folder: Path
    version: str = ""
    missing: str = ""


def install_peer(name: str) -> Environment:
    """Install a peer unless it is there already in this version."""
    is_python = name in PYTHON_PEERS
    packages = (PYTHON_PEERS[name],) if is_python else NODE_PEERS[name]
    version = packages[0].replace("==", "@").rpartition("@")[2]
    folder = cache_folder() / "bench" / "peers" / f"{name}-{version}"
    done = folder / _DONE
    if done.exists() and json.loads(done.read_text("utf-8")) == list(packages):
        return Environment(folder, version)
    print(f"→ installing {name} {version} (once)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prepare = [sys.executable, "-m", "venv", "."] if is_python else ["npm", "init", "--yes"]
    for command in (prepare, [*_INSTALL[is_python], *packages]):
        try:
            subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            told = getattr(problem, "stderr", None) or str(problem)
            return Environment(folder, version, missing=(told.strip().splitlines() or ["?"])[-1])
    done.write_text(json.dumps(packages), encoding="utf-8")
    return Environment(folder, version)
