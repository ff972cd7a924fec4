"""The hub with servers that behave."""

import asyncio
import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bakeoff.engine.resources import open_resources
from bakeoff.errors import InfraError, ToolError, UsageError
from bakeoff.mcp import HubLimits, McpHub, ServerSpec, ServerTool
from bakeoff.mcp.tools import tools_fingerprint

from .conftest import Opening, Raw


async def test_tools_of_several_servers_are_listed_page_by_page(raw: Raw, opened: Opening) -> None:
    async with opened(raw("paged", name="a"), raw(name="b")) as hub:
        tools = await hub.tools()
    of_a = [tool.name for tool in tools if tool.server == "a"]
    assert of_a == [tool.name for tool in tools if tool.server == "b"]
    assert len(of_a) == 11
    assert tools[0].description == "The tool echo."


async def test_calls_from_many_tasks_are_in_flight_together(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        calls = [hub.call("raw", "echo", {"text": str(number)}) for number in range(200)]
        results = await asyncio.gather(*calls)
    assert [result.text for result in results] == [str(number) for number in range(200)]


async def test_a_cancelled_call_leaves_the_server_usable(raw: Raw, opened: Opening) -> None:
    async with opened(raw(), call_seconds=5) as hub:
        task = asyncio.create_task(hub.call("raw", "echo", {"text": "never seen"}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await hub.call("raw", "echo", {"text": "next"})).text == "next"


async def test_a_run_opens_the_hub_as_a_resource_by_its_key(raw: Raw) -> None:
    hub, same, other = McpHub([raw()]), McpHub([raw()]), McpHub([raw()], HubLimits(tools=5))
    assert hub.key == same.key != other.key
    async with open_resources([hub, same]) as resources:
        assert resources == {hub.key: resources[hub.key]}
        assert resources[hub.key].servers == ("raw",)


async def test_a_traced_run_has_a_span_of_each_call_to_a_server(tmp_path: Path, raw: Raw) -> None:
    program = textwrap.dedent("""\
        import asyncio, json, sys
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from bakeoff.mcp import McpHub, ServerSpec
        from bakeoff.engine.resources import open_resources
        from bakeoff._kernel.tracing import OFF, OpenTelemetry, active_tracing

        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)

        async def main():
            hub = McpHub([ServerSpec.model_validate_json(sys.argv[1])])
            async with open_resources([OpenTelemetry(), hub]) as resources:
                for tool in ("echo", "liar"):
                    await asyncio.create_task(resources[hub.key].call("raw", tool, {"text": "a secret"}))
            assert active_tracing() is OFF

        asyncio.run(main())
        ours = [span for span in exporter.get_finished_spans() if span.instrumentation_scope.name == "bakeoff"]
        print(json.dumps([[span.name, span.kind.name, span.status.status_code.name, dict(span.attributes)]
                          for span in ours]))
        """)
    command = [sys.executable, "-c", program, raw().model_dump_json()]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    about = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "bakeoff.mcp.server": "raw"}
    assert json.loads(done.stdout) == [
        ["tools/call echo", "CLIENT", "UNSET", {**about, "gen_ai.tool.name": "echo"}],
        ["tools/call liar", "CLIENT", "ERROR", {**about, "gen_ai.tool.name": "liar", "error.type": "tool_error"}],
    ]


@pytest.mark.parametrize("whose", ["the application's", "our own"])
async def test_a_server_is_told_the_trace_that_a_call_belongs_to(tmp_path: Path, raw: Raw, whose: str) -> None:
    program = textwrap.dedent("""\
        import asyncio, json, os, sys, threading
        from http.server import BaseHTTPRequestHandler, HTTPServer
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from bakeoff.mcp import McpHub, ServerSpec
        from bakeoff.engine.resources import open_resources
        from bakeoff._kernel.tracing import OpenTelemetry, active_tracing

        class Collector(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.end_headers()

        async def main():
            hub = McpHub([ServerSpec.model_validate_json(sys.argv[1])])
            async with open_resources([OpenTelemetry(), hub]) as resources:
                with active_tracing().span("outer", {}):
                    trace_id = f"{trace.get_current_span().get_span_context().trace_id:032x}"
                    result = await resources[hub.key].call("raw", "echo", {"text": "_meta"})
            print(json.dumps([trace_id, json.loads(result.text)]))

        with HTTPServer(("127.0.0.1", 0), Collector) as server:
            os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
            threading.Thread(target=server.serve_forever, daemon=True).start()
            if sys.argv[2] != "our own":
                trace.set_tracer_provider(TracerProvider())
            asyncio.run(main())
            server.shutdown()
        """)
    command = [sys.executable, "-c", program, raw().model_dump_json(), whose]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    trace_id, meta = json.loads(done.stdout)
    assert meta["traceparent"].split("-")[1] == trace_id
    assert int(trace_id, 16) != 0


async def test_an_untraced_call_tells_a_server_nothing_about_a_trace(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        told = await hub.call("raw", "echo", {"text": "_meta"})
    assert "traceparent" not in told.text


def test_two_servers_of_one_name_are_refused(raw: Raw) -> None:
    with pytest.raises(UsageError, match="two MCP servers are called 'raw'"):
        McpHub([raw(), raw("noise")])


async def test_a_call_after_closing_is_refused_and_one_in_flight_is_let_go(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        late = asyncio.create_task(hub.call("raw", "slow", {}))
        await asyncio.sleep(0.1)
    for call in (late, hub.call("raw", "echo", {})):
        with pytest.raises(InfraError, match="closed"):
            await call


# --- the environment -------------------------------------------------------------------------------------------


async def test_a_server_gets_no_key_of_ours_but_what_its_entry_adds(
    raw: Raw, opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "SOME_SETTING", "PYTHONPATH"):
        monkeypatch.setenv(name, "ours alone")
    monkeypatch.setenv("LANG", "C.UTF-8")
    async with opened(raw(env={"WEATHER_KEY": "given", "LANG": "de_DE.UTF-8"})) as hub:
        environment = json.loads((await hub.call("raw", "env", {})).text)
    assert "ours alone" not in environment.values()
    assert environment["WEATHER_KEY"] == "given"
    assert environment["LANG"] == "de_DE.UTF-8"
    assert {"PATH", "HOME"} <= environment.keys()


async def test_a_server_starts_in_its_folder(raw: Raw, opened: Opening, tmp_path: Path) -> None:
    script = "import runpy, sys; open('here', 'w'); del sys.argv[0]; runpy.run_path(sys.argv[0], None, '__main__')"
    spec = raw(cwd=tmp_path, writable=[tmp_path])
    async with opened(spec.model_copy(update={"args": ("-c", script, *spec.args)})):
        assert (tmp_path / "here").exists()


# --- fingerprints ----------------------------------------------------------------------------------------------


def some_tools() -> list[ServerTool]:
    schema = {"type": "object", "properties": {"x": {"type": "number"}}}
    return [ServerTool(server="s", name=name, description="d", input_schema=schema) for name in "abcde"]


def test_the_fingerprint_does_not_depend_on_the_order() -> None:
    tools = some_tools()
    shuffled = random.Random(4).sample(tools, len(tools))
    assert tools_fingerprint(shuffled) == tools_fingerprint(tools)


@pytest.mark.parametrize(
    "change",
    [{"name": "z"}, {"description": "D"}, {"input_schema": {"type": "object"}}, {"output_schema": {"type": "object"}}],
)
def test_the_fingerprint_changes_with_any_name_description_or_schema(change: dict[str, object]) -> None:
    first, *rest = some_tools()
    assert tools_fingerprint([first.model_copy(update=change), *rest]) != tools_fingerprint([first, *rest])


async def test_fingerprints_of_one_server_and_of_all(raw: Raw, opened: Opening) -> None:
    async with opened(raw("paged", name="a"), raw(name="b"), raw("no-tools", name="c")) as hub:
        assert hub.fingerprint("a") == hub.fingerprint("b") != hub.fingerprint("c")
        assert hub.fingerprint() not in {hub.fingerprint(name) for name in hub.servers}


# --- tools for an agent loop -----------------------------------------------------------------------------------


async def test_tools_for_the_agent_loop_run_on_the_host(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        tools = {tool.name: tool for tool in hub.as_tools({"read_file"})}
        assert tools["echo"].parameters["type"] == "object"
        assert await tools["echo"].call({"text": "hello"}) == "hello"
        with pytest.raises(ToolError, match="no such city"):
            await tools["fail"].call({})
        with pytest.raises(InfraError):
            await tools["die"].call({})


async def test_names_that_clash_are_refused_with_both_sides(raw: Raw, opened: Opening) -> None:
    async with opened(raw(name="one"), raw(name="two")) as hub:
        with pytest.raises(UsageError) as between_servers:
            hub.as_tools()
        with pytest.raises(UsageError) as with_ours:
            hub.as_tools({"die"})
    assert "'echo' is offered by MCP server 'one' and by MCP server 'two'" in str(between_servers.value)
    assert "'die' is offered by a built-in tool and by MCP server 'one'" in str(with_ours.value)


async def test_a_hub_without_servers_is_empty() -> None:
    async with McpHub([]).open() as hub:
        assert await hub.tools() == ()
        assert hub.as_tools({"anything"}) == ()
        with pytest.raises(UsageError, match="there are none"):
            hub.fingerprint("x")


def test_a_server_spec_shows_no_secret() -> None:
    spec = ServerSpec(name="s", url="https://me:pass1234@host/mcp?token=abc", headers={"Authorization": "Bearer 123"})
    for secret in ("pass1234", "token=abc", "Bearer 123"):
        assert secret not in f"{spec!r} {spec} {spec.address}"
    assert spec.address == "https://host/mcp"
    assert set(spec.secrets.values()) == {"pass1234", "Bearer 123"}
