"""Write constraints.txt: a version of every package for Python 3.11 and newer, with the hashes of all its files.

Pins that still fit stay; `--upgrade` resolves all of them anew. The index is that of pip's own settings, and nothing of
it goes into the file. uv resolves for all platforms and Pythons at once, and is installed for this only.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.with_tool import environment, with_tool

ROOT = Path(__file__).parents[1]
EXTRAS = ("dev", "bench", "local", "otel")
PYTHON = "3.11.5"  # what development needs; users need 3.11
HEADER = f"""\
# What `make setup` installs: .[{",".join(EXTRAS)}] on Python {PYTHON} or newer. pip refuses files with other hashes.
# Made by `make constraints`; do not edit. Ranges that users get are in pyproject.toml.
"""


def main() -> None:
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    form = ["--universal", "--python-version", PYTHON, "--generate-hashes", "--no-annotate", "--no-header", "--quiet"]
    target = ROOT / "constraints.txt"
    with with_tool("uv") as uv, tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "constraints.txt"
        made.write_bytes(target.read_bytes())  # pins that it prefers
        command = [str(uv), "pip", "compile", "pyproject.toml", *extras, *form, "--output-file", str(made)]
        subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=environment(), check=True)
        text = made.read_text("utf-8")
    target.write_text(HEADER + text, "utf-8")
    print(f"✓ constraints.txt: {len(re.findall('(?m)^[a-z]', text))} versions, {text.count('--hash=')} hashes")


if __name__ == "__main__":
    main()
