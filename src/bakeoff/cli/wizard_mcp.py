"""The questions about MCP servers: which ones, together or apart, and whether also without any."""

from itertools import count

from bakeoff.cli.wizard_prompts import Option, advice, agree, pick, type_in
from bakeoff.doors.components.request import JOINED
from bakeoff.errors import UsageError
from bakeoff.mcp.servers import DEFAULT_COMMAND, DEFAULT_URL, parse_mcp_option

NONE = "none"
_HTTP, _STDIO = "http", "stdio"
_APART, _TOGETHER = "apart", "together"
_USUAL = {_HTTP: DEFAULT_URL, _STDIO: DEFAULT_COMMAND}
_ASKED = {_HTTP: "Its address", _STDIO: "Its command"}


def ask_mcp(before: tuple[str, ...]) -> tuple[str, ...]:
    """The MCP axis of a run: each entry is `none`, a server, or servers that are used together."""
    offered = _servers_of(before)
    servers = _ask_servers(offered)
    if not servers:
        return (NONE,)
    arms = _ask_grouping(servers, before)
    also_without = agree("Also without MCP, to see the difference?", default=NONE in before and bool(offered))
    return (NONE, *arms) if also_without else arms


def _servers_of(axis: tuple[str, ...]) -> list[str]:
    """The servers of an earlier answer, each once; what is no server is left out."""
    texts = (text.strip() for entry in axis for text in entry.split(JOINED.strip()))
    return [text for text in dict.fromkeys(texts) if text != NONE and _problem(text) is None]


def _ask_servers(offered: list[str]) -> list[str]:
    servers: list[str] = []
    for number in count():
        before = offered[number] if number < len(offered) else NONE
        kind = pick(*_question(number), default=before.partition(":")[0])
        if kind == NONE:
            break
        servers.append(_ask_server(kind, before))
    return list(dict.fromkeys(servers))


def _question(number: int) -> tuple[str, list[Option]]:
    first = number == 0
    options = [
        Option(NONE, "none, built-in tools only" if first else "no"),
        Option(_HTTP, "over HTTP" if first else "yes, over HTTP"),
        Option(_STDIO, "over StdIO" if first else "yes, over StdIO"),
    ]
    return ("MCP server" if first else "Another server", options)


def _ask_server(kind: str, before: str) -> str:
    kind_before, _, rest = before.partition(":")
    usual = _USUAL[kind]
    default = rest if kind_before == kind and rest else usual
    typed = type_in(_ASKED[kind], default, lambda text: _problem(f"{kind}:{text}" if text else kind))
    return kind if typed in ("", usual) else f"{kind}:{typed}"


def _problem(text: str) -> str | None:
    kind, _, rest = text.partition(":")
    if kind not in _USUAL or not text.isprintable():
        return "this has control characters in it"
    if JOINED in rest:
        return f"leave out {JOINED!r}, which stands between servers"
    try:
        parse_mcp_option(text)
    except UsageError as error:
        return advice(error)
    return None


def _ask_grouping(servers: list[str], before: tuple[str, ...]) -> tuple[str, ...]:
    if len(servers) == 1:
        return tuple(servers)
    options = [
        Option(_APART, "one at a time: which is better?"),
        Option(_TOGETHER, "all at once: all their tools"),
    ]
    together = any(JOINED in entry for entry in before)
    chosen = pick("Several servers", options, default=_TOGETHER if together else _APART)
    return tuple(servers) if chosen == _APART else (JOINED.join(servers),)
