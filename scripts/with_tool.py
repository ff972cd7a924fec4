"""Install a program for one use: development should not carry what is needed once a month."""

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSIONS = {"uv": "0.13.7", "pip-audit": "2.10.1"}


@contextmanager
def with_tool(name: str) -> Iterator[Path]:
    """Install a package into an environment of its own, and give the path of its program until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        subprocess.run(
            [programs / "python", "-m", "pip", "install", "--quiet", f"{name}=={VERSIONS[name]}"], check=True
        )
        yield programs / name


def pip_setting(name: str) -> str:
    """Return a setting of pip, from its environment variable or its files, or nothing."""
    asked = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return os.environ.get(f"PIP_{name.upper().replace('-', '_')}") or done.stdout.strip()


def environment() -> dict[str, str]:
    """Return the environment, with pip's settings under the names that uv and pip-audit read."""
    index, certificates = pip_setting("index-url"), pip_setting("cert")
    found = {"UV_DEFAULT_INDEX": index, "SSL_CERT_FILE": certificates, "REQUESTS_CA_BUNDLE": certificates}
    return {**os.environ, **{variable: value for variable, value in found.items() if value}}
