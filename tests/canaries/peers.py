"""Those that repeat keys: a provider on loopback, and MCP servers over stdio and HTTP."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from tests.models.loopback import Act, Loopback, Received, failure

_SERVER = '''
import json, sys

def answer(message, said, loud):
    """Return the answer of an MCP server that repeats keys in results and errors; if it is loud, in all it offers."""
    if "id" not in message:
        return None
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    everything = "\\n".join(said.values())
    offered = everything if loud else ""
    if message["method"] == "initialize":
        info = {"name": "canaries", "version": offered[:200]}
        capabilities = {"tools": {}, "resources": {}, "prompts": {}}
        known = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        return {**reply, "result": {**known, "instructions": offered}}
    if message["method"] == "tools/list":
        first = list(said.values())[:5] if loud else ["one", "two"]
        texts = {"type": "string", "description": first[0], "default": first[0], "examples": first}
        schema = {"type": "object", "properties": {"encoding": texts, "mode": {"enum": first}}}
        tools = [{"name": name, "description": f"{name} it {offered}"} for name in ("tell", "fail")]
        return {**reply, "result": {"tools": [{**tool, "inputSchema": schema} for tool in tools]}}
    if message["method"] == "resources/list":
        return {**reply, "result": {"resources": [{"uri": "canary://a", "name": "a", "description": offered}]}}
    if message["method"] == "prompts/list":
        return {**reply, "result": {"prompts": [{"name": "p", "description": offered}]}}
    if message["method"] == "tools/call":
        wanted = message["params"]["arguments"].get("encoding", "")
        if wanted == "protocol error":
            return {**reply, "error": {"code": -32000, "message": everything}}
        fails = message["params"]["name"] == "fail"
        text = said.get(wanted, everything)
        return {**reply, "result": {"content": [{"type": "text", "text": text}], "isError": fails}}
    return {**reply, "error": {"code": -32601, "message": "not known here: " + said["plain"]}}
'''
_OVER_STDIO = """
SAID = json.loads(%r)
print("\\n".join(SAID.values()), file=sys.stderr, flush=True)
for line in sys.stdin:
    if (reply := answer(json.loads(line), SAID, %r)) is not None:
        print(json.dumps(reply), flush=True)
"""
_SPACE: dict[str, Any] = {}
exec(_SERVER, _SPACE)


def write_server(path: Path, said: Mapping[str, str], *, loud: bool) -> None:
    """Write a server for stdio that repeats these texts."""
    path.write_text(_SERVER + _OVER_STDIO % (json.dumps(said), loud))


@contextmanager
def serving_mcp(said: Mapping[str, str], *, loud: bool) -> Iterator[int]:
    """Serve MCP over HTTP; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            pass

        def do_GET(self) -> None:
            self._reply(405, b"")

        do_DELETE = do_GET

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answered = _SPACE["answer"](message, said, loud)
            self._reply(202, b"") if answered is None else self._reply(200, json.dumps(answered).encode())

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Provider(Loopback):
    """A provider whose model calls every tool it has, and repeats keys in answers, arguments, code and errors."""

    def __init__(self, said: Mapping[str, str]) -> None:
        super().__init__()
        self.said = said
        self.everything = "\n".join(said.values())
        self._conversations = count()
        self.plan = self._answer

    def _answer(self, request: Received) -> Act:
        if request.path == "/said":
            return Act(body=self.everything.encode())
        if not isinstance(request.body, dict) or "messages" not in request.body:
            return Act()
        step = sum(message["role"] == "assistant" for message in request.body["messages"])
        if step == 0 and next(self._conversations) % 3 == 2:
            return failure(400, self.everything)
        offered = [tool["function"]["name"] for tool in request.body.get("tools", ())]
        if step == 0 and (calls := tuple(self._calls(offered))):
            return Act(say=self.everything, think=self.everything, calls=calls)
        if "ResultWrite" in offered:
            return Act(calls=(("ResultWrite", {"content": self.code()}),))
        return Act(say=self.everything, think=self.everything)

    def _calls(self, offered: list[str]) -> Iterator[tuple[str, Any]]:
        for name in offered:
            if "tell" in name:
                yield from ((name, {"encoding": encoding}) for encoding in (*self.said, "protocol error"))
                yield name, {"encoding": self.said["hex"]}
            elif "fail" in name:
                yield name, {}
            elif name == "TestComponent":
                yield name, {"content": self.code()}
        if offered:
            yield self.said["plain"], self.everything  # a tool that is not there, with arguments that are no JSON

    def code(self) -> str:
        """Return a component that repeats keys when it is tested, and fails."""
        return f"SAID = {self.everything!r}\nprint(SAID)\ndef add(a, b):\n    assert a == 0, SAID\n    return a + b\n"
