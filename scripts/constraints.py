"""Write constraints.txt: the versions that all extras resolve to, on the Python that runs this.

The index and its mirrors are pip's own settings; nothing of them goes into the file.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXTRAS = "dev,bench,docs,local,otel"
HEADER = """\
# The versions that `make setup` installs. Resolved on Python {python} for .[{extras}].
# Made by `make constraints`; do not edit. Ranges that users get are in pyproject.toml.
"""


def resolve() -> dict[str, Any]:
    """What pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        wanted = ["--dry-run", "--ignore-installed", "--report", str(report), f"{ROOT}[{EXTRAS}]"]
        subprocess.run([*pip, *wanted], check=True)
        answer: dict[str, Any] = json.loads(report.read_text("utf-8"))
        return answer


def pins(report: dict[str, Any]) -> list[str]:
    """One `name==version` per package, without the project itself."""
    packages = (item["metadata"] for item in report["install"])
    return sorted(
        f"{package['name'].lower().replace('_', '-')}=={package['version']}"
        for package in packages
        if package["name"] != "bakeoff"
    )


def main() -> None:
    print(f"→ resolving .[{EXTRAS}]", flush=True)
    lines = pins(resolve())
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    header = HEADER.format(python=python, extras=EXTRAS)
    (ROOT / "constraints.txt").write_text(header + "\n".join(lines) + "\n", "utf-8")
    print(f"✓ constraints.txt: {len(lines)} versions")


if __name__ == "__main__":
    main()
