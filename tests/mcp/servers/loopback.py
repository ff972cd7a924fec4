"""A loopback HTTP server that speaks MCP in its own way: `python loopback.py BEHAVIOUR`; prints its port."""

import json
import queue
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BEHAVIOUR = sys.argv[1]
SESSIONS: list[str] = []
OUTBOX: "queue.Queue[dict[str, Any] | None]" = queue.Queue()
TOOL = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    if "id" not in message:
        return None
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        info = {"name": "loopback", "version": "1"}
        return {**reply, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    if message["method"] == "tools/list":
        return {**reply, "result": {"tools": [TOOL]}}
    if message["method"] == "tools/call":
        text = "x" * 20_000_000 if BEHAVIOUR == "oversized" else message["params"]["arguments"].get("text", "")
        return {**reply, "result": {"content": [{"type": "text", "text": text}]}}
    return {**reply, "error": {"code": -32601, "message": "not known here"}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: object) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """The SSE stream. `nameless` leaves out every `event:` line, `nameless-messages` all but the first."""
        if not BEHAVIOUR.startswith(("nameless", "named", "dies")):
            self.reply(405)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        first = "" if BEHAVIOUR in ("nameless", "dies") else "event: endpoint\r\n"
        self.event(": hello\r\n\r\n" + first + "data: /messages?session_id=1\r\n\r\n")
        while (message := OUTBOX.get()) is not None:
            name = "event: message\r\n" if BEHAVIOUR == "named" else ""
            self.event(f"{name}data: {json.dumps(message)}\r\n\r\n")

    def event(self, text: str) -> None:
        for piece in (text[:7], text[7:]):  # in two packets, so that no line can be counted on to arrive whole
            self.wfile.write(piece.encode())
            self.wfile.flush()
            time.sleep(0.005)

    def forgetful(self, message: dict[str, Any], reply: dict[str, Any] | None) -> None:
        """Knows its first session no more when a tool is called in it, as after a restart."""
        session = self.headers.get("Mcp-Session-Id")
        if message["method"] == "initialize":
            session = str(len(SESSIONS))
            SESSIONS.append(session)
        if message["method"] == "tools/call" and session == "0":
            self.reply(404)
            return
        self.reply(200 if reply else 202, json.dumps(reply).encode() if reply else b"", Mcp_Session_Id=session or "")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if BEHAVIOUR == "secretive" and self.headers.get("Authorization") != "Bearer open-sesame":
            self.reply(401, b'{"error": "the token has expired"}', "text/plain", WWW_Authenticate="Bearer realm=tools")
            return
        if BEHAVIOUR == "broken":
            self.reply(500, b"oops", "text/plain")
            return
        if BEHAVIOUR == "packed" and "id" in message:
            self.reply(200, json.dumps(answer(message)).encode(), Content_Encoding="gzip")
            return
        reply = answer(message)
        if BEHAVIOUR == "forgets":
            self.forgetful(message, reply)
            return
        if self.path.startswith("/messages"):
            self.reply(202)
            # One stream dies with the first call; the next client gets a new one.
            dying = BEHAVIOUR == "dies" and message["method"] == "tools/call"
            if dying or reply:
                OUTBOX.put(None if dying else reply)
        else:
            self.reply(200 if reply else 202, json.dumps(reply).encode() if reply else b"")


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
