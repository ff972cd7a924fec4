"""Implement `bakeoff mcp import` and `serve`: cases of other formats, and servers of recorded tools."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.text import count_of
from bakeoff.cli.console import say
from bakeoff.cli.declare import PASSED, command, flag, group_of
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue

app = group_of()
imports = group_of("Import cases of other formats.", "bakeoff mcp import bfcl questions.json answers.json -o bfcl.yaml")

_FOR_EVERYONE = 0o644
_SECONDS = 300


@command(imports, "bfcl")
def bfcl(
    *,
    files: Annotated[list[Path], Argument(metavar="FILE", help="Files with questions, and with possible answers.")],
    models: list[str] | None = flag(None, "A model to test. Default: local:smollm2.", "--model"),
    output: Path = flag(Path("bfcl.yaml"), "The configuration to write.", "--output", "-o", metavar="FILE"),
    force: bool = flag(False, "Overwrite existing files."),
) -> int:
    """Import questions of the Berkeley Function Calling Leaderboard: simple, multiple, parallel, irrelevance.

    Example: bakeoff mcp import bfcl questions.json answers.json -o bfcl.yaml
    """

    from bakeoff.doors.mcp.bfcl import import_bfcl
    from bakeoff.doors.mcp.config import check_config, suite_environment
    from bakeoff.doors.mcp.examples import SCHEMA_NAME, published_schema
    from bakeoff.doors.mcp.generate.drafts import config_text

    tools = output.with_suffix(".tools.json")
    taken = [str(path) for path in (output, tools) if path.exists()]
    if taken and not force:
        raise UsageError(f"{', '.join(taken)} would be overwritten: name another file with -o, or add --force")
    found = import_bfcl(files)
    servers: list[JsonValue] = [_server(name, tools.name) for name in found.snapshot.servers]
    config: dict[str, JsonValue] = {
        "testRound": 1,
        "passThreshold": 1,
        "modelsToTest": list(models or ["local:smollm2"]),
        "modelSettings": {"timeout": _SECONDS},
        "executeTools": False,
        "testCases": list(found.cases),
        "mcpServers": servers,
    }
    for note in found.notes:
        say(f"note: {note}")
    text = config_text(config)
    check_config(text, output, suite_environment(output.parent))
    found.snapshot.write(tools)
    write_atomically(output, text.encode(), _FOR_EVERYONE)
    schema = output.with_name(SCHEMA_NAME)
    if not schema.exists():
        write_atomically(schema, published_schema().encode(), _FOR_EVERYONE)
    say(f"wrote {output} and {tools}: {count_of(len(found.cases), 'case')}")
    say(f"now try: bakeoff mcp evaluate {output}")
    return PASSED


def _server(name: str, tools: str) -> "JsonValue":
    """Return a server that describes the functions. It is found without a path where `bakeoff` is."""
    words: Sequence[str] = ["bakeoff"] if shutil.which("bakeoff") else [sys.executable, "-m", "bakeoff"]
    # No sandbox shows Bakeoff itself, and this server executes nothing.
    args: list[JsonValue] = [*words[1:], "mcp", "serve", tools, name]
    return {"name": name, "command": words[0], "args": args, "sandbox": "none"}


@command(app, "serve")
def serve(
    *,
    file: Annotated[Path, Argument(metavar="SNAPSHOT", help="What servers offer, as `snapshot` writes it.")],
    name: Annotated[
        str | None, Argument(metavar="SERVER", help="The server of the snapshot. Default: the only one.")
    ] = None,
) -> int:
    """Serve the tools of a snapshot over stdio, without doing anything when they are called.

    Example: bakeoff mcp serve mcp-snapshot.json
    """

    from bakeoff.mcp.snapshot import serve_snapshot

    serve_snapshot(file, name)
    return PASSED
