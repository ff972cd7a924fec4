"""Spans of a run: where they go, what is in them, and that there is nothing where nobody asked for them."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.tracing import OFF

pytestmark = pytest.mark.full

PROGRAM = """
import asyncio, json, sys
from bakeoff.engine.registry import Registry, default_registry
from bakeoff.errors import ToolError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Tool
from bakeoff.engine.run import run

async def look(given):
    if not given:
        raise ToolError("look at what?")
    return "a secret of the prompt"

REPLIES = {"replies": [
    {"step": 0, "call": [{"name": "look", "arguments": {"at": "it"}}, {"name": "look", "arguments": {}}]},
    {"step": 1, "say": "yes", "usage": {"input": 30, "output": 3}},
]}

async def main(trace):
    open("script.json", "w").write(json.dumps(REPLIES))
    tools = (Tool("look", "Looks", {"type": "object"}, look),)
    registry = default_registry().with_tools(lambda *_: tools)
    agent = SubjectSpec(kind="agent", name="agent", options={"model": "scripted:script.json", "temperature": 0.5})
    plan = Plan(name="p", cases=(Case(id="c", prompt="a secret of the prompt", expected="yes"),), subjects=(agent,),
                scorers=(ScorerSpec(kind="exact"),))
    return [r async for r in run(plan, RunOptions(trace=trace, jobs=2), registry=registry)]
"""

IN_MEMORY = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
asyncio.run(main(True))
names = {span.context.span_id: span.name for span in exporter.get_finished_spans()}
print(json.dumps([
    {"name": span.name, "inside": names.get(span.parent.span_id) if span.parent else None, "kind": span.kind.name,
     "status": span.status.status_code.name, "attributes": dict(span.attributes),
     "events": [[event.name, dict(event.attributes)] for event in span.events]}
    for span in exporter.get_finished_spans()
]))
"""


def carry_out(folder: Path, program: str, **environment: str) -> str:
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}, **environment}
    command = [sys.executable, "-W", "error", "-c", PROGRAM + program]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_trial_its_model_calls_and_its_tools_are_spans_inside_each_other(tmp_path: Path) -> None:
    spans: list[dict[str, Any]] = json.loads(carry_out(tmp_path, IN_MEMORY))
    assert [(span["name"], span["inside"], span["kind"], span["status"]) for span in spans] == [
        ("chat script.json", "trial c", "CLIENT", "UNSET"),
        ("execute_tool look", "trial c", "INTERNAL", "UNSET"),
        ("execute_tool look", "trial c", "INTERNAL", "ERROR"),
        ("chat script.json", "trial c", "CLIENT", "UNSET"),
        ("trial c", None, "INTERNAL", "UNSET"),
    ]
    assert spans[-1]["attributes"] == {
        "bakeoff.case": "c",
        "bakeoff.subject": "agent",
        "bakeoff.round": 0,
        "bakeoff.verdict": "pass",
        "bakeoff.tries": 1,
    }
    score = {"gen_ai.evaluation.name": "exact", "gen_ai.evaluation.score.value": 1.0}
    assert spans[-1]["events"] == [["gen_ai.evaluation.result", score]]
    assert [span["events"] for span in spans[:-1]] == [[]] * 4
    answered = spans[3]["attributes"]
    assert answered["gen_ai.operation.name"] == "chat"
    assert answered["gen_ai.provider.name"] == "scripted"
    assert answered["gen_ai.request.model"] == "script.json"
    assert answered["gen_ai.request.temperature"] == 0.5
    assert (answered["gen_ai.usage.input_tokens"], answered["gen_ai.usage.output_tokens"]) == (30, 3)
    assert "gen_ai.usage.input_tokens" not in spans[0]["attributes"]
    tool = spans[1]["attributes"]
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.name"]) == ("execute_tool", "look")
    assert spans[2]["attributes"]["error.type"] == "ToolError"
    assert "secret" not in json.dumps(spans)


def test_a_key_in_the_name_of_a_tool_that_a_model_made_up_is_in_no_span(tmp_path: Path) -> None:
    key = "Zq8Wv3Lp0Xn5Rt7Yb2Kd"
    written = key.encode().hex()
    program = f"REPLIES['replies'][0]['call'].append({{'name': '{written}', 'arguments': {{}}}})\n{IN_MEMORY}"
    spans = carry_out(tmp_path, program, MY_API_KEY=key)
    assert "execute_tool [redacted MY_API_KEY]" in spans
    assert written not in spans


def test_without_a_tracer_of_the_programs_own_spans_go_to_the_collector(tmp_path: Path) -> None:
    received: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Not to the terminal."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        carry_out(tmp_path, "asyncio.run(main(True))", OTEL_EXPORTER_OTLP_ENDPOINT=address)
        server.shutdown()
    [(path, body)] = received
    assert path == "/v1/traces"
    assert b"chat script.json" in body
    assert b"execute_tool look" in body
    assert b"bakeoff.verdict" in body


def test_off_none_of_it_is_loaded_by_us(tmp_path: Path) -> None:
    program = (
        "[r] = asyncio.run(main(False))\n"
        "print(r.verdict, [m for m in sys.modules if m.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    assert carry_out(tmp_path, program) == "pass []\n"
    program = (
        "import bakeoff.engine.run, bakeoff._kernel.tracing; "
        "print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    assert carry_out(tmp_path, program) == "[]\n"


def test_off_every_span_is_the_same_nothing() -> None:
    assert OFF.span("a", {}) is OFF.span("b", {"x": 1})
    with OFF.span("a", {}) as span:
        span.note({"x": 1})
        span.event("e", {"x": 1})
        span.failed("so it is")


def test_asking_for_spans_without_the_extra_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('opentelemetry.sdk'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from bakeoff.errors import UsageError\n"
        "try: asyncio.run(main(True))\n"
        "except UsageError as error: print(error)"
    )
    assert "pip install 'bakeoff[otel]'" in carry_out(tmp_path, program)


def test_a_span_ends_with_the_error_that_ended_it_and_without_its_words() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from bakeoff._kernel.tracing import _RealTracing

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def fail() -> None:
        with _RealTracing(provider.get_tracer("t")).span("broken", {"left out": None}):
            raise ValueError("a secret")

    with pytest.raises(ValueError, match="a secret"):
        asyncio.run(fail())
    [span] = exporter.get_finished_spans()
    assert dict(span.attributes or {}) == {"error.type": "ValueError"}
    assert span.events == ()
