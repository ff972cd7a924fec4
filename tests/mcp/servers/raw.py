"""An MCP server in raw JSON-RPC over stdio that misbehaves to order: `python raw.py BEHAVIOUR [ARGUMENT]`."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


def tool(name: str, schema: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema, **more}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


NUMBER_OUT = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
TOOLS = [tool(name) for name in ("echo", "die", "slow", "fail", "reject", "huge", "garble", "env", "pid", "big")]
TOOLS.append(tool("liar", outputSchema=NUMBER_OUT))

LISTS: dict[str, list[dict[str, Any]]] = {
    "ten-thousand": [tool(f"tool-{number}") for number in range(10_000)],
    "schema-of-string": [tool("fine"), tool("wrong", {"type": "string"})],
    "schema-is-list": [tool("fine"), tool("wrong", [1, 2])],
    "schema-missing": [{"name": "wrong", "description": "no schema at all"}],
    "schema-invalid": [tool("wrong", {"type": "object", "properties": {"x": {"type": "objekt"}}})],
    "schema-bad-pattern": [tool("wrong", {"type": "object", "properties": {"x": {"pattern": "("}}})],
    "schema-deep": [tool("wrong", nested(60))],
    "schema-very-deep": [tool("wrong", nested(300))],
    "schema-huge": [tool("wrong", {"type": "object", "description": "x" * 250_000})],
    "list-huge": [tool(f"tool-{number}", {"type": "object", "description": "x" * 150_000}) for number in range(20)],
    "output-schema-invalid": [tool("wrong", outputSchema={"type": "object", "properties": {"n": {"type": "objekt"}}})],
    "duplicate": [tool("same"), tool("same")],
    "name-control": [tool("bell\x07\x1b[31m")],
    "name-long": [tool("n" * 200)],
    "name-empty": [tool("")],
    "no-tools": [],
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def forever() -> None:
    while True:
        time.sleep(3600)


def text_result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def die() -> dict[str, Any]:
    print("the disk is on fire", file=sys.stderr, flush=True)
    os._exit(7)


def huge() -> dict[str, Any]:
    """One line that never ends."""
    while True:
        sys.stdout.write("x" * 65536)


def slow() -> dict[str, Any]:
    time.sleep(60)
    return text_result("at last")


ACTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "die": die,
    "slow": slow,
    "huge": huge,
    "fail": lambda: text_result("no such city", is_error=True),
    "garble": lambda: {"content": "not a list"},
    "env": lambda: text_result(json.dumps(dict(os.environ))),
    "pid": lambda: text_result(str(os.getpid())),
    "big": lambda: text_result("y" * 2_000_000),
    "liar": lambda: {**text_result("{}"), "structuredContent": {"n": "not a number"}},
}


def call(request: int, params: dict[str, Any]) -> None:
    name = params["name"]
    if name == "reject":
        say({"id": request, "error": {"code": -32602, "message": "text must not be empty"}})
        return
    text = params.get("arguments", {}).get("text", "")
    if text == "_meta":
        text = json.dumps(params.get("_meta"))
    action = ACTIONS.get(name, lambda: text_result(text))
    say({"id": request, "result": action()})


def page(behaviour: str, cursor: str | None) -> dict[str, Any]:
    if behaviour == "cursor-loop":
        return {"tools": [], "nextCursor": "again"}
    if behaviour == "cursor-new":
        return {"tools": [], "nextCursor": str(int(cursor or 0) + 1)}
    if behaviour == "paged":
        first = int(cursor or 0)
        more = {"nextCursor": str(first + 4)} if first + 4 < len(TOOLS) else {}
        return {"tools": TOOLS[first : first + 4], **more}
    if behaviour == "changes":  # after its first life it offers other tools
        mark = Path(sys.argv[2])
        lived_before = mark.exists()
        mark.touch()
        return {"tools": [*TOOLS, tool("new")] if lived_before else TOOLS}
    if behaviour == "comes-back-never":
        mark = Path(sys.argv[2])
        if mark.exists():
            print("the licence has run out", file=sys.stderr, flush=True)
            sys.exit(4)
        mark.touch()
    return {"tools": LISTS.get(behaviour, TOOLS)}


def answer(behaviour: str, message: dict[str, Any]) -> None:
    method, request = message.get("method"), message.get("id")
    if request is None:
        return
    if method == "initialize":
        if behaviour == "hang-initialize":
            forever()
        info = {"name": "raw", "version": "1"}
        say(
            {
                "id": request,
                "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info},
            }
        )
    elif method == "tools/list":
        if behaviour == "hang-list":
            forever()
        if behaviour == "list-garbage":
            say({"id": request, "result": ["not", "an", "object"]})
            return
        say({"id": request, "result": page(behaviour, message.get("params", {}).get("cursor"))})
    elif method == "tools/call":
        call(request, message["params"])
    else:
        say({"id": request, "error": {"code": -32601, "message": f"{method} is not known here"}})


def begin(behaviour: str) -> None:
    """Run before the first message."""
    if behaviour == "crash":
        print("Traceback: \x1b[31mno database\x1b[0m, key", os.environ.get("SERVICE_TOKEN", "-"), file=sys.stderr)
        sys.exit(3)
    if behaviour == "crash-silently":
        os.abort()
    if behaviour == "flood-stderr":
        for number in range(200_000):
            print(f"line {number} " + "z" * 50, file=sys.stderr)
    if behaviour == "noise":
        sys.stdout.buffer.write(b'Welcome to the server!\n\n\xff\xfe\x00binary\n{"half": \n[1, 2]\n')
    if behaviour == "noise-for-ever":
        while True:
            sys.stdout.write("still starting…\n")
    if behaviour in ("child", "child-stubborn"):
        daemon = "import time; time.sleep(3600)"
        child = subprocess.Popen(
            [sys.executable, "-c", daemon], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        Path(sys.argv[2]).write_text(f"{os.getpid()} {child.pid}")


def main() -> None:
    behaviour = sys.argv[1]
    begin(behaviour)
    for line in sys.stdin:
        answer(behaviour, json.loads(line))
    if behaviour == "child-stubborn":  # does not leave when its stdin is closed
        forever()


if __name__ == "__main__":
    main()
