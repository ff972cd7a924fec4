"""Test what is loaded when; the direction of imports is import-linter's affair."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"pydantic", "rich", "scipy", "numpy", "pydantic_ai", "mcp", "httpx", "ray", "xllamacpp"}


def test_the_command_line_names_no_heavy_library_at_its_top() -> None:
    tree = ast.parse((ROOT / "src" / "bakeoff" / "cli" / "main.py").read_text("utf-8"))
    named = set()
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            named |= {alias.name.split(".")[0] for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            named.add(statement.module.split(".")[0])
    assert named & HEAVY == set()


@pytest.mark.parametrize("command", ["", "eval", "run", "agents run", "mcp evaluate", "mcp lint", "runs list", "demo"])
def test_help_loads_no_library_that_only_a_run_needs(command: str) -> None:
    code = (
        f"import sys; from bakeoff.cli.main import main; sys.argv = ['bakeoff', *{command.split()}, '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    # typer draws its help with rich, and loads pydantic for the types of options.
    assert loaded & (HEAVY - {"rich", "pydantic" if command else ""}) == set()
