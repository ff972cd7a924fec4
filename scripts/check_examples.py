"""Check the types of the examples in the docs of evals: pyright and mypy, both strict.

An example is a Python block, or a file that a console or bash block writes with `cat > NAME.py <<'EOF'`. Errors are
shown at the line of the page.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("docs/how-to/pytest*.md", "docs/how-to/evals.md", "docs/how-to/recordings.md")
FENCE = re.compile(r"^```(python|console|bash)(?: title=\"[\w.]+\")?\s*$")
FILE = re.compile(r"^(?:\$ )?cat > (\w+)\.py <<'EOF'$")
PYRIGHT = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "reportPrivateUsage": "none"}
MYPY_LINE = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: (?P<text>.*)$")


def examples_of(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each example of a page: the number of the line before it, and its lines."""
    language, inside = "", False
    first, lines = 0, list[str]()
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if not language:
            if opening := FENCE.match(line):
                language, inside = opening[1], opening[1] == "python"
                first, lines = number, []
            continue
        ends = line == "```" or (language != "python" and line.removeprefix("> ") == "EOF")
        if ends and inside:
            yield first, lines
        if line == "```":
            language = ""
        inside = inside and not ends
        if inside:
            lines.append(line.removeprefix("> ") if language == "console" else line)
        elif language and FILE.match(line):
            inside, first, lines = True, number, []


def write_examples(folder: Path) -> dict[str, tuple[Path, int]]:
    """Write all examples to a folder; return the page and the line of each, by the name of its file."""
    places = {}
    for page in sorted(found for pattern in PAGES for found in ROOT.glob(pattern)):
        for first, lines in examples_of(page):
            name = f"{page.stem.replace('-', '_')}_{first}.py"
            (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
            places[name] = (page.relative_to(ROOT), first)
    return places


def pyright(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield what pyright finds: file, line, message."""
    settings = {**PYRIGHT, "venvPath": str(Path(sys.prefix).parent), "venv": Path(sys.prefix).name}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson"], cwd=folder, capture_output=True, text=True, check=False
    )
    if not done.stdout.startswith("{"):
        raise SystemExit(f"pyright did not run: {done.stdout}{done.stderr}")
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        yield Path(each["file"]).name, each["range"]["start"]["line"] + 1, f"pyright: {each['message']}"


def mypy(folder: Path, names: list[str]) -> Iterator[tuple[str, int, str]]:
    """Yield what mypy finds: file, line, message."""
    cache = ROOT / ".mypy_cache" / "examples"
    options = ["--strict", "--no-error-summary", "--config-file=", f"--cache-dir={cache}", "--no-pretty"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *names], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode > 1:
        raise SystemExit(f"mypy did not run: {done.stdout}{done.stderr}")
    for line in done.stdout.splitlines():
        if found := MYPY_LINE.match(line):
            yield found["file"], int(found["line"]), f"mypy: {found['text']}"


def main() -> None:
    """Print every error at its place in the docs, and leave with 1 if there is one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = write_examples(folder)
        found = [*pyright(folder), *mypy(folder, sorted(places))]
    for file, line, message in found:
        page, first = places[file]
        print(f"{page}:{first + line}: {message}")
    print(f"{'✗' if found else '✓'} {len(places)} examples of evals, {len(found)} errors of types")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
