"""An MCP server over stdio whose tools are in a file: `python words.py TOOLS.json`, with descriptions by name."""

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    tools = json.loads(Path(sys.argv[1]).read_text())
    listed: list[dict[str, Any]] = [
        {"name": name, "description": text, "inputSchema": {"type": "object", "properties": {}}}
        for name, text in tools.items()
    ]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any] = {}
        if message["method"] == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "words", "version": "1"},
            }
        elif message["method"] == "tools/list":
            result = {"tools": listed}
        elif message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": message["params"]["name"]}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
