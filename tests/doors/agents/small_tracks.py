"""Small tracks in the layout of Exercism, and agents that are shell scripts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Files = Mapping[str, str]

DOUBLE: Files = {
    ".docs/introduction.md": "# Introduction\n\nNumbers may be doubled.\n",
    ".docs/instructions.md": "# Instructions\n\nDouble a number.\n",
    ".docs/instructions.append.md": "Use no loop.\n",
    ".meta/config.json": json.dumps(
        {"files": {"solution": ["double.py"], "test": ["double_test.py"], "example": [".meta/example.py"]}}
    ),
    ".meta/example.py": "def double(number):\n    return 2 * number\n",
    "double.py": "def double(number):\n    pass\n",
    "double_test.py": (
        "from double import double\n\n\ndef test_one():\n    assert double(1) == 2\n\n\n"
        "def test_zero():\n    assert double(0) == 0\n"
    ),
}
PAIR: Files = {
    ".docs/instructions.md": "Add up what two modules say.\n",
    ".meta/config.json": json.dumps(
        {
            "files": {
                "solution": ["left.py", "right.py"],
                "test": ["pair_test.py", "numbers_for.py"],
                "example": [".meta/example/left.py", ".meta/example/right.py"],
            }
        }
    ),
    ".meta/example/left.py": "LEFT = 20\n",
    ".meta/example/right.py": "RIGHT = 22\n",
    "left.py": "LEFT = 0\n",
    "right.py": "RIGHT = 0\n",
    "numbers_for.py": "WANTED = 42\n",
    "pair_test.py": (
        "from left import LEFT\nfrom numbers_for import WANTED\nfrom right import RIGHT\n\n\n"
        "def test_sum():\n    assert LEFT + RIGHT == WANTED\n"
    ),
}
RIGHT_DOUBLE = "def double(number):\n    return number + number\n"


def with_files(**more: list[str]) -> str:
    """The configuration of `double`, with more files declared in it."""
    return json.dumps({"files": {**json.loads(DOUBLE[".meta/config.json"])["files"], **more}})


def write_files(folder: Path, files: Files) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def write_track(root: Path, slug: str = "python", **exercises: Files) -> Path:
    """A track's checkout, with git's folder as checkouts have one."""
    entries = [{"slug": name.replace("_", "-")} for name in exercises]
    write_files(root, {"config.json": json.dumps({"slug": slug, "exercises": {"practice": entries}})})
    write_files(root, {".git/HEAD": "ref: refs/heads/main\n"})
    for name, files in exercises.items():
        write_files(root / "exercises" / "practice" / name.replace("_", "-"), files)
    return root


def bytes_of(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return everything in a folder: content, mode and time of each file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (content, about.st_mode, about.st_mtime_ns)
    return found


def agent_file(folder: Path, name: str, script: str, **more: Any) -> Path:
    """A real command-line agent: a script for the shell. `$1` is the prompt."""
    path = folder / f"{name}.yaml"
    about = {
        "name": name,
        "defaultProvider": "nobody",
        "install": {"method": "other"},
        "command": ["sh", "-c", script, "sh", "{instructions}"],
        **more,
    }
    path.write_text(json.dumps(about))  # JSON is YAML
    return path


def overwrite(name: str, text: str) -> str:
    return f"cat > {name} <<'END'\n{text}END\n"
