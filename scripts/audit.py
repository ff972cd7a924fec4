"""Look up the known vulnerabilities of every version in constraints.txt, with pip-audit.

Exits with 1 if there are any, and with 3 if the service could not be asked about some: that is no good news.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts.with_tool import environment, with_tool

ROOT = Path(__file__).parents[1]


def summary(packages: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Return the exit code and what to print for the packages of pip-audit's report."""
    found = [f"✗ {each['name']} {each['version']}: {one['id']}" for each in packages for one in each.get("vulns", [])]
    unknown = [each["name"] for each in packages if "skip_reason" in each]
    lines = [*found, f"→ {len(packages) - len(unknown)} of {len(packages)} versions were looked up"]
    if unknown:
        lines.append(f"✗ nothing is known about {', '.join(unknown[:5])}{' …' if unknown[5:] else ''}")
    return (1 if found else 3 if unknown or not packages else 0), lines


def main() -> None:
    words = ["--disable-pip", "--require-hashes", "--requirement", str(ROOT / "constraints.txt"), "--format", "json"]
    with with_tool("pip-audit") as program:
        done = subprocess.run([str(program), *words], env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    code, lines = summary(json.loads(done.stdout or '{"dependencies": []}')["dependencies"])
    print(*lines, sep="\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
