"""Write constraints.txt: a version of every package for Python 3.11 and newer, with the hashes of all its files.

Pins that still fit stay; `--upgrade` resolves all of them anew. The index is that of pip's own settings, and nothing of
it goes into the file. uv resolves for all platforms and Pythons at once, and is installed for this only.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("dev", "bench", "local", "otel")
PYTHON = "3.11.5"  # what development needs; users need 3.11
HEADER = f"""\
# What `make setup` installs: .[{",".join(EXTRAS)}] on Python {PYTHON} or newer. pip refuses files with other hashes.
# Made by `make constraints`; do not edit. Ranges that users get are in pyproject.toml.
"""


def pip_setting(name: str) -> str:
    """Return a setting of pip, from its environment variable or its files, or nothing."""
    asked = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return os.environ.get(f"PIP_{name.upper().replace('-', '_')}") or done.stdout.strip()


def settings_for_uv() -> dict[str, str]:
    """Return the environment, with pip's settings under the names that uv reads."""
    found = {"UV_DEFAULT_INDEX": pip_setting("index-url"), "SSL_CERT_FILE": pip_setting("cert")}
    return {**os.environ, **{name: value for name, value in found.items() if value}}


def main() -> None:
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    form = ["--universal", "--python-version", PYTHON, "--generate-hashes", "--no-annotate", "--no-header", "--quiet"]
    target = ROOT / "constraints.txt"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        subprocess.run([bin / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
        made = Path(folder) / "constraints.txt"
        made.write_bytes(target.read_bytes())  # pins that it prefers
        command = [bin / "uv", "pip", "compile", "pyproject.toml", *extras, *form, "--output-file", made]
        subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=settings_for_uv(), check=True)
        text = made.read_text("utf-8")
    target.write_text(HEADER + text, "utf-8")
    print(f"✓ constraints.txt: {len(re.findall(r'(?m)^[a-z]', text))} versions, {text.count('--hash=')} hashes")


if __name__ == "__main__":
    main()
