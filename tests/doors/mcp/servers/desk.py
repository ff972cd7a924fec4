"""An MCP server over stdio for the tests: `python desk.py health|notes [NOTE_OF_LIVES [turned|SECONDS]]`.

`health` and `notes` overlap in what they can be used for. `notes` has a state: each note gets the next number. With a
file, each start of the server is noted there, and `stumble` dies the first time that it is called. `turned`: from the
second start on, tools are listed from the last to the first. SECONDS: how long each call takes.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def tool(name: str, description: str, **parameters: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    hints = {"annotations": {"destructiveHint": True}} if name == "erase" else {}
    return {"name": name, "description": description, "inputSchema": schema, **hints}


TOOLS = {
    "health": [
        tool("calculate-bmi", "The body mass index of a person.", weightKg=NUMBER, heightM=NUMBER),
        tool("log", "Write something <b>down</b>.", text=TEXT),
        tool("stumble", "Dies the first time.", text=TEXT),
    ],
    "notes": [
        tool("add-note", "Keep a note; gives its number.", text=TEXT),
        tool("log", "Keep a line of a diary.", text=TEXT),
        tool("fail", "Always fails.", text=TEXT),
        tool("erase", "Erase all notes.", text=TEXT),
    ],
}
notes: list[str] = []


def say(request: int, **more: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request, **more}) + "\n")
    sys.stdout.flush()


def call(name: str, arguments: dict[str, Any], lives: Path | None) -> dict[str, Any]:
    if name == "calculate-bmi":
        bmi = round(arguments["weightKg"] / arguments["heightM"] ** 2, 1)
        return {"content": [{"type": "text", "text": json.dumps({"bmi": bmi})}], "structuredContent": {"bmi": bmi}}
    if name == "stumble" and lives is not None and len(lives.read_text().split()) < 2:  # one life to die
        os._exit(7)
    if name == "fail":
        return {"content": [{"type": "text", "text": "it was meant to"}], "isError": True}
    notes.append(os.path.expandvars(arguments.get("text", "")))  # so that a note can give away what it was told
    return {"content": [{"type": "text", "text": f"note {len(notes)}: {notes[-1]}"}]}


def main() -> None:
    offered = TOOLS[sys.argv[1]]
    lives = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    manner = sys.argv[3] if len(sys.argv) > 3 else "0"
    if lives is not None:
        with lives.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if manner == "turned" and len(lives.read_text().split()) > 1:
            offered = offered[::-1]
    for line in sys.stdin:
        message = json.loads(line)
        request = message.get("id")
        if request is None:
            continue
        if message["method"] == "initialize":
            info = {"name": sys.argv[1], "version": "1"}
            say(request, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
        elif message["method"] == "tools/list":
            say(request, result={"tools": offered})
        elif message["method"] == "tools/call":
            time.sleep(0 if manner == "turned" else float(manner))
            say(request, result=call(message["params"]["name"], message["params"]["arguments"], lives))
        else:
            say(request, error={"code": -32601, "message": "not known here"})


if __name__ == "__main__":
    main()
