"""Implement `bakeoff mcp list`, `snapshot` and `diff`, and find the servers that they use."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from typer import Argument

from bakeoff._kernel.files import PUBLIC, write_atomically
from bakeoff._kernel.text import count_of
from bakeoff.cli.console import out, print_json, say
from bakeoff.cli.declare import FAILED, PASSED, Flags, command, flag, group_of
from bakeoff.cli.flags import CONFIG, HEADERS, AsJson
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.doors.mcp.config import McpSuite
    from bakeoff.mcp import ServerSpec
    from bakeoff.mcp.snapshot import Snapshot

app = group_of()
FailOnChange: TypeAlias = Literal["breaking", "risky", "cosmetic", "never"]


class DirectFlags(Flags):
    """Options that choose or name servers. Subclasses add an option for the configuration."""

    only: list[str] | None = flag(None, "Only this server of the configuration.", "--server")
    commands: list[str] | None = flag(
        None, "The command of a server, instead of a configuration.", "--command", metavar="TEXT"
    )
    urls: list[str] | None = flag(None, "The URL of a server, instead of a configuration.", "--url", metavar="URL")
    headers: list[str] | None = HEADERS
    path: Path | None = None


class ServerFlags(DirectFlags):
    """Options that choose servers, with the configuration as the argument."""

    path: Annotated[
        Path | None,
        Argument(
            metavar="PATH",
            help="A YAML file, or a folder of them. Default: the nearest configuration here or in a folder above.",
        ),
    ] = None


class ServerOptions(DirectFlags):
    """Options that choose servers, with the configuration as an option."""

    path: Path | None = CONFIG


def direct_servers(servers: DirectFlags) -> "list[ServerSpec]":
    """Return the servers that --command, --url or a client's file names, ready to start.

    The result is empty if the flags name a suite or nothing. Raises `UsageError` for conflicting
    flags, and for servers that are not in the file.
    """

    from bakeoff.doors.mcp.config import suite_environment
    from bakeoff.doors.mcp.servers import hidden_headers, with_headers
    from bakeoff.mcp.client_files import client_specs
    from bakeoff.mcp.servers import with_variables

    found = [_parse("--command", "stdio", command) for command in servers.commands or ()]
    found += [_parse("--url", "http", url) for url in servers.urls or ()]
    if found and (servers.path is not None or servers.only):
        raise UsageError("--command and --url name a server instead of a configuration: use only one of them")
    headers, secrets = hidden_headers(servers.headers or ())
    if names_client_file(servers) and servers.path is not None:
        environment = {**suite_environment(servers.path.parent), **secrets}
        known = client_specs(servers.path, environment)
        found = [spec for spec in known if not servers.only or spec.name in servers.only]
        if missing := set(servers.only or ()) - {spec.name for spec in found}:
            names = ", ".join(spec.name for spec in known)
            raise UsageError(f"{servers.path} has no server {sorted(missing)[0]!r}: there are {names or 'none'}")
        if not found:
            raise UsageError(f"{servers.path} names no server that is enabled")
        return [with_variables(spec, environment) for spec in with_headers(found, headers)]
    environment = {**suite_environment(Path()), **secrets}
    return [with_variables(spec, environment) for spec in with_headers(found, headers)] if found and headers else found


def names_client_file(servers: DirectFlags) -> bool:
    """Tell whether the path is a client's file, such as .mcp.json, and not a configuration."""

    from bakeoff.mcp.client_files import is_client_file

    return servers.path is not None and is_client_file(servers.path)


def read_suites_of(servers: DirectFlags) -> "list[McpSuite]":
    """Return the suites of the configuration, with the headers of --header added."""

    from bakeoff.doors.mcp.config import read_suite
    from bakeoff.doors.mcp.servers import suite_with_headers
    from bakeoff.doors.mcp.suites import find_configs

    return [suite_with_headers(read_suite(file), servers.headers or ()) for file in find_configs(servers.path)]


def one_suite(servers: DirectFlags) -> "tuple[Sequence[ServerSpec], McpSuite | None, Mapping[str, str]]":
    """Return the servers, ready to start, with their suite and the environment variables.

    The suite is None for servers that are named directly. Raises `UsageError` if the path has several suites.
    """

    from bakeoff.doors.mcp.config import suite_environment
    from bakeoff.doors.mcp.servers import hidden_headers, servers_of
    from bakeoff.mcp.servers import with_unique_names

    if direct := direct_servers(servers):
        _, secrets = hidden_headers(servers.headers or ())
        return with_unique_names(direct), None, {**suite_environment(Path()), **secrets}
    suites = read_suites_of(servers)
    if len(suites) > 1:
        raise UsageError(f"{servers.path} has {len(suites)} suites: name the file of one")
    suite = suites[0]
    return servers_of(suite, servers.only or ()), suite, suite.environment


def _parse(option: str, kind: str, text: str) -> "ServerSpec":
    from bakeoff.mcp import parse_mcp_option
    from bakeoff.mcp.servers import UNSANDBOXED

    kind, text = (kind, text) if not text.startswith(f"{UNSANDBOXED}:") else (UNSANDBOXED, text.partition(":")[2])
    try:
        spec = parse_mcp_option(f"{kind}:{text}") if text.strip() else None
    except UsageError as error:
        raise UsageError(str(error).replace(f"--mcp '{kind}:", f"{option} '")) from error
    if spec is None:
        raise UsageError(f"{option} is empty: name a server")
    return spec


@command(app, "list")
def list_offers(
    *,
    server: Annotated[str | None, Argument(metavar="SERVER", help="Show this server whole. Default: all.")] = None,
    servers: ServerOptions,
    as_json: AsJson = False,
) -> int:
    """Show what servers offer: tools with their parameters, resources and prompts.

    Example: bakeoff mcp list --command "python server.py"
    """

    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.report.tools import listing_blocks

    if server is not None:
        servers = ServerOptions(**{**vars(servers), "only": [server, *(servers.only or ())]})
    specs, _, _ = one_suite(servers)
    snapshot = asyncio.run(take_snapshot(specs))
    if as_json:
        print_json(json.loads(snapshot.text()))
    else:
        print_blocks(out(), list(listing_blocks(snapshot, whole=server is not None or len(specs) == 1)))
    return PASSED


async def take_snapshot(specs: "Sequence[ServerSpec]") -> "Snapshot":
    """Ask servers for everything that they offer.

    Secrets that servers repeat in their texts are redacted, because a snapshot is meant to be committed.
    """

    from bakeoff.doors.mcp.servers import redactor_of
    from bakeoff.mcp import McpHub
    from bakeoff.mcp.snapshot import Snapshot

    async with McpHub(specs).open() as hub:
        return redactor_of(specs).model(Snapshot.of(await hub.offers(), await hub.tools()))


@command(app, "snapshot")
def snapshot(
    *,
    servers: ServerFlags,
    output: str | None = flag(
        None,
        "The file to write; `-` is stdout. Default: mcp-snapshot.json beside the configuration.",
        "--output",
        "-o",
        metavar="FILE",
    ),
) -> int:
    """Write the tools, resources and prompts of servers to a file that can be committed.

    Example: bakeoff mcp snapshot -o mcp-snapshot.json
    """
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


@command(app, "diff")
def diff(
    *,
    before: Annotated[
        Path | None,
        Argument(metavar="BEFORE", help="A snapshot. Default: mcp-snapshot.json beside the configuration."),
    ] = None,
    after: Annotated[
        Path | None, Argument(metavar="AFTER", help="Another snapshot. Default: what the servers offer now.")
    ] = None,
    servers: ServerOptions,
    as_json: AsJson = False,
    sarif: Path | None = flag(None, "Also write SARIF, for code hosts.", metavar="FILE"),
    fail_on: FailOnChange = flag("breaking", "The lowest level of a change that makes the exit code 1."),
) -> int:
    """Show what changed since a snapshot: breaking, risky or cosmetic.

    Example: bakeoff mcp diff mcp-snapshot.json --fail-on risky
    """

    from bakeoff.mcp.changes import changes
    from bakeoff.mcp.snapshot import Snapshot, read_snapshot
    from bakeoff.report.exports.sarif import changes_as_sarif
    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.report.tools import change_blocks, changes_as_json, fails

    old = read_snapshot(before or _beside_configuration(servers))
    if servers.only:
        kept = {name: server for name, server in old.snapshot.servers.items() if name in servers.only}
        old = replace(old, snapshot=Snapshot(servers=kept))
    new = read_snapshot(after).snapshot if after is not None else asyncio.run(take_snapshot(one_suite(servers)[0]))
    found = changes(old.snapshot, new)
    if sarif is not None:
        write_json(sarif, changes_as_sarif(found, old))
    if as_json:
        print_json(changes_as_json(found))
    else:
        print_blocks(out(), list(change_blocks(found)))
    if found and after is None and old.file is not None:
        say(f"`bakeoff mcp snapshot` writes {old.file} anew, to accept the changes")
    return FAILED if fails(found, fail_on) else PASSED


def write_json(file: Path, value: object) -> None:
    """Write a value as a JSON file that other users may read, and report it."""
    write_atomically(file, (json.dumps(value, indent=2) + "\n").encode(), PUBLIC)
    say(f"wrote {file}")


def _beside_configuration(servers: DirectFlags) -> Path:
    """Return the usual path of a snapshot: beside the configuration, or here if servers are named directly."""

    from bakeoff.doors.mcp.suites import find_configs
    from bakeoff.mcp.snapshot import SNAPSHOT_NAME

    if servers.commands or servers.urls or names_client_file(servers):
        return Path(SNAPSHOT_NAME)
    return find_configs(servers.path)[0].parent / SNAPSHOT_NAME
