"""Carry out `bakeoff mcp snapshot` and `diff`."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.text import count_of
from bakeoff.cli.console import out, print_json, say
from bakeoff.cli.flags import DirectFlags, ServerFlags, ServerOptions
from bakeoff.cli.mcp_look import take_snapshot
from bakeoff.cli.mcp_servers import names_client_file, one_suite
from bakeoff.cli.run_plan import FAILED, PASSED
from bakeoff.doors.mcp.results.tools import change_blocks, changes_as_json, changes_as_sarif, fails
from bakeoff.doors.mcp.suites import find_configs
from bakeoff.mcp.changes import changes
from bakeoff.mcp.snapshot import SNAPSHOT_NAME, Snapshot, read_snapshot
from bakeoff.report.render.terminal import print_blocks

_FOR_EVERYONE = 0o644


def snapshot(servers: ServerFlags, *, output: str | None = None) -> int:
    """Write what servers offer to a file."""
    file = Path(output) if output is not None else _beside_configuration(servers)
    specs, _, _ = one_suite(servers)
    taken = asyncio.run(take_snapshot(specs))
    if output == "-":
        out().file.write(taken.text())
        return PASSED
    taken.write(file)
    tools = sum(len(server.tools) for server in taken.servers.values())
    say(f"wrote {file}: {count_of(tools, 'tool')} of {count_of(len(taken.servers), 'server')}")
    return PASSED


def diff(
    *,
    before: Path | None = None,
    after: Path | None = None,
    servers: ServerOptions,
    as_json: bool = False,
    sarif: Path | None = None,
    fail_on: str = "breaking",
) -> int:
    """Print what changed; return 1 if a change is at least as serious as `fail_on`."""
    old = read_snapshot(before or _beside_configuration(servers))
    if servers.only:
        kept = {name: server for name, server in old.snapshot.servers.items() if name in servers.only}
        old = replace(old, snapshot=Snapshot(servers=kept))
    new = read_snapshot(after).snapshot if after is not None else asyncio.run(take_snapshot(one_suite(servers)[0]))
    found = changes(old.snapshot, new)
    if sarif is not None:
        write_atomically(sarif, (json.dumps(changes_as_sarif(found, old), indent=2) + "\n").encode(), _FOR_EVERYONE)
        say(f"wrote {sarif}")
    if as_json:
        print_json(changes_as_json(found))
    else:
        print_blocks(out(), list(change_blocks(found)))
    if found and after is None and old.file is not None:
        say(f"`bakeoff mcp snapshot` writes {old.file} anew, to accept the changes")
    return FAILED if fails(found, fail_on) else PASSED


def _beside_configuration(servers: DirectFlags) -> Path:
    """Return the usual place: beside the configuration, or here if servers are named directly."""
    if servers.commands or servers.urls or names_client_file(servers):
        return Path(SNAPSHOT_NAME)
    config = find_configs(servers.path)[0]
    return config.parent / SNAPSHOT_NAME
