"""Write the constraints: a version of every package for Python 3.11 and newer, with the hashes of all its files.

constraints.txt is for development, constraints-demo.txt the part of it that the demo needs. Pins that still fit stay;
`--upgrade` resolves all of them anew. The index is that of pip's own settings, and nothing of it goes into the files.
uv resolves for all platforms and Pythons at once, and is installed for this only.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from scripts.with_tool import environment, with_tool

ROOT = Path(__file__).parents[1]
DEVELOPMENT, DEMO = ROOT / "constraints.txt", ROOT / "constraints-demo.txt"
EXTRAS = {DEVELOPMENT: ("local", "otel"), DEMO: ("local",)}
GROUPS = {DEVELOPMENT: ("dev", "bench", "docs"), DEMO: ()}
PYTHON = "3.11.5"  # what development needs; users need 3.11
HEADER = """\
# What `make {target}` installs: {parts} on Python {python} or newer. pip refuses files with other hashes.
# Made by `make constraints`; do not edit. Ranges that users get are in pyproject.toml.
"""
# Older versions of pip take the newest version for a requirement with extras unless its pin names them.
FORM = [
    "--universal",
    "--no-strip-extras",
    "--python-version",
    PYTHON,
    "--generate-hashes",
    "--no-annotate",
    "--no-header",
    "--quiet",
]


def main() -> None:
    with with_tool("uv") as uv, tempfile.TemporaryDirectory() as folder:
        backend = Path(folder, "backend.in")
        backend.write_text("\n".join(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]))
        for target, more in ((DEVELOPMENT, sys.argv[1:]), (DEMO, [])):  # the second takes the pins of the first
            preferred = DEVELOPMENT.read_text("utf-8")
            extras = [word for extra in EXTRAS[target] for word in ("--extra", extra)]
            groups = [word for group in GROUPS[target] for word in ("--group", group)]
            text = resolve(uv, [Path("pyproject.toml"), backend], [*extras, *groups], preferred, more)
            parts = " and the groups ".join(filter(None, (f".[{','.join(EXTRAS[target])}]", ", ".join(GROUPS[target]))))
            make = "setup" if target == DEVELOPMENT else "demo"
            target.write_text(HEADER.format(target=make, parts=parts, python=PYTHON) + text, "utf-8")
            print(f"✓ {target.name}: {len(re.findall('(?m)^[a-z]', text))} versions, {text.count('--hash=')} hashes")


def resolve(uv: Path, sources: Sequence[Path], parts: Sequence[str], preferred: str, more: Sequence[str]) -> str:
    """Return the pins of everything that the sources need, those of `preferred` where they fit.

    `parts` are uv's options for extras and groups.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "constraints.txt")
        made.write_text(preferred, "utf-8")
        command = [str(uv), "pip", "compile", *map(str, sources), *parts, *FORM, "--output-file", str(made), *more]
        subprocess.run(command, cwd=ROOT, env=environment(), check=True)
        return made.read_text("utf-8")


if __name__ == "__main__":
    main()
