"""Carry out `bakeoff mcp list` and `call`: look at servers by hand."""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence

from bakeoff._kernel.text import count_of, quoted
from bakeoff._kernel.yaml_with_lines import gathered
from bakeoff.cli.console import can_ask, out, print_json, say
from bakeoff.cli.flags import ServerOptions
from bakeoff.cli.mcp_servers import one_suite
from bakeoff.cli.run_plan import FAILED, PASSED
from bakeoff.doors.mcp.results.tools import listing_blocks
from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool, ToolCallResult
from bakeoff.mcp.arguments import argument_problems, find_tool, parse_arguments, parse_json_arguments
from bakeoff.mcp.offers import PROMPT, READ
from bakeoff.mcp.snapshot import Snapshot
from bakeoff.mcp.tools import is_destructive
from bakeoff.report.formatting import shown, visible
from bakeoff.report.render.terminal import print_blocks
from bakeoff.storage.redacted_stream import printed_secrets
from bakeoff.storage.redaction import Redactor, known_secrets


def list_offers(*, server: str | None = None, servers: ServerOptions, as_json: bool = False) -> int:
    """Print what servers offer: all of them in short, or one with every parameter."""
    if server is not None:
        servers = ServerOptions(**{**vars(servers), "only": [server, *(servers.only or ())]})
    specs, _, _ = one_suite(servers)
    snapshot = asyncio.run(take_snapshot(specs))
    if as_json:
        print_json(json.loads(snapshot.text()))
    else:
        print_blocks(out(), list(listing_blocks(snapshot, whole=server is not None or len(specs) == 1)))
    return PASSED


async def take_snapshot(specs: Sequence[ServerSpec]) -> Snapshot:
    """Ask servers for everything that they offer. What the configuration exposes as tools is listed as what it is.

    Secrets that servers repeat in their texts are redacted, because a snapshot is meant to be committed.
    """
    async with McpHub([spec.model_copy(update={"expose": ()}) for spec in specs]).open() as hub:
        return redactor_of(specs).model(Snapshot.of(hub.servers, await hub.tools(), await hub.offers()))


def redactor_of(specs: Sequence[ServerSpec]) -> Redactor:
    """Return what takes out the secrets of servers and of the environment. From now on, they are not printed either."""
    own = {f"{spec.name} {name}": value for spec in specs for name, value in spec.shown_to_nobody.items()}
    printed_secrets().learn(own)
    return Redactor({**known_secrets(), **own})


def call(
    tool: str,
    words: list[str] | None = None,
    *,
    servers: ServerOptions,
    args: str | None = None,
    timeout: float = 60.0,
    check: bool = True,
    yes: bool = False,
    as_json: bool = False,
) -> int:
    """Call one tool and print its result; return 1 if the tool reports an error."""
    if args is not None and words:
        raise UsageError(f"--args has all arguments: leave out {visible(words[0], 80)}, or --args")
    specs = one_suite(servers)[0]
    if tool.rpartition("/")[2].startswith((READ, PROMPT)):
        specs = [spec.model_copy(update={"expose": ("resources", "prompts")}) for spec in specs]
    result = asyncio.run(_call(specs, tool, words or [], args, seconds=timeout, check=check, yes=yes))
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _print(result)
    return FAILED if result.is_error else PASSED


async def _call(
    specs: Sequence[ServerSpec],
    wanted: str,
    words: Sequence[str],
    args: str | None,
    *,
    seconds: float,
    check: bool,
    yes: bool,
) -> ToolCallResult:
    async with McpHub(specs).open() as hub:
        tool = find_tool(await hub.tools(), wanted)
        if args is None:
            arguments = parse_arguments(words, tool)
        else:
            arguments = parse_json_arguments(sys.stdin.read() if args == "-" else args)
        if check:
            gathered([*argument_problems(arguments, tool)])
        if is_destructive(tool) and not yes:
            await _ask(tool)
        return redactor_of(specs).model(await hub.call(tool.server, tool.name, arguments, seconds=seconds))


async def _ask(tool: ServerTool) -> None:
    """Ask before a tool is called that may destroy something. Raise `UsageError` unless the answer is yes."""
    marked = f"{quoted(tool.name, 80)} is marked as destructive by its server"
    if not can_ask():
        raise UsageError(f"{marked}: call it with --yes if you mean it")
    out().print(f"{marked}. Call it? [y/N] ", end="")
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not answer.done():
            answer.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin.fileno(), read)  # a question that blocks the loop could not be left with Ctrl-C
    try:
        said = await answer
    finally:
        loop.remove_reader(sys.stdin.fileno())
    if said.strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was called")


def _print(result: ToolCallResult) -> None:
    if result.is_error:
        say(f"{quoted(result.tool, 80)} reported an error:")
    for text in _texts(result):
        out().print(shown(text), soft_wrap=True)


def _texts(result: ToolCallResult) -> Iterator[str]:
    """Yield the parts of a result for people: texts as they are, other parts by their kind and size."""
    for part in result.content:
        if not isinstance(part, dict):
            continue
        kind, resource = str(part.get("type")), part.get("resource")
        if kind == "text":
            yield str(part.get("text"))
        elif isinstance(resource, dict) and isinstance(resource.get("text"), str):
            yield str(resource["text"])
        elif kind in ("image", "audio"):
            size = len(str(part.get("data") or "")) * 3 // 4
            yield f"({kind} of {count_of(size, 'byte')}, {part.get('mimeType')}: use --json to get it)"
        else:
            yield json.dumps(part, indent=2, ensure_ascii=False)
    if not result.content and result.text:
        yield result.text
    spelled = [_json(part.get("text")) for part in result.content if isinstance(part, dict)]
    if result.structured is not None and result.structured not in spelled:
        wrapped = isinstance(result.structured, dict) and list(result.structured) == ["result"]
        if not (wrapped and result.text):  # an SDK wraps plain values in this way
            yield json.dumps(result.structured, indent=2, ensure_ascii=False)


def _json(text: object) -> object:
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return None
