"""Run each door with keys planted, and have them repeated."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.canaries.peers import Provider, serving_mcp, write_server
from tests.canaries.sources import AGENT, BOUNDED, CONTROL, FILES, HEADER, LOGIN, MCP, REQUEST, TOKEN, VARIABLES, Source
from tests.canaries.world import Output, World, after_run
from tests.doors.agents.small_tracks import DOUBLE, agent_file, write_track
from tests.doors.components.small_suites import ADDER, write_suites

PYTEST = ("-v", "-rA", "-l", "--junitxml=junit.xml", "--eval-json=evals.json", "--eval-html=evals.html")


def with_provider(world: World, stack: ExitStack, without: Sequence[Source] = ()) -> tuple[Provider, dict[str, str]]:
    """Start the provider, and return it with the variables that lead to it and to its collector of spans."""
    provider = Provider(world.said(without))
    provider.start()
    stack.callback(provider.stop)
    return provider, {
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": provider.url,
        "GITHUB_STEP_SUMMARY": str(world.folder / "tmp" / "summary.md"),
    }


def keep_spans(world: World, door: str, provider: Provider) -> None:
    """Keep what the collector of spans received."""
    spans = [request for request in provider.received if request.path == "/v1/traces"]
    assert spans, "no span was sent"
    for request in spans:
        world.outputs.append(Output(door, "spans", bytes(request.body)))


REPORTS = ("--junit", "junit.xml", "--markdown", "-o", "summary.md", "--github")


def run_door(world: World) -> None:
    """Run `bakeoff run`: a model as coding agent, with tools and MCP servers."""
    write_suites(world.project / "tests", adder=ADDER)
    server = world.project / "server.py"
    write_server(server, world.said(), loud=True)
    world.ignore_files()
    with ExitStack() as stack:
        provider, variables = with_provider(world, stack)
        given = {"CANARY_SERVER_TOKEN": MCP["server variable"].planted}
        words = (
            "run",
            "--model",
            "openai:gpt-4o",
            "--mcp",
            f"stdio:{sys.executable} {server} --token ${{CANARY_SERVER_TOKEN}}",
            "--no-open",
        )
        world.run("run", *words, "--rounds", "3", "--jobs", "1", "--trace", *REPORTS, env={**variables, **given})
        world.run("run", *words, "--rounds", "1", "--replay", "auto", "--json", env={**variables, **given})
        keep_spans(world, "run", provider)
    after_run(world, "run", "results")


_AGENT = f"""\
{sys.executable} - <<'END'
import json, os, sys, urllib.request
said = urllib.request.urlopen(os.environ["SAID_URL"]).read().decode()
body = json.dumps({{"model": "gpt-4o", "messages": [{{"role": "user", "content": said}}]}}).encode()
headers = {{"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
try:
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        print(answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.read().decode(), file=sys.stderr)
print(said, os.environ)
print(said, file=sys.stderr)
for root, _, files in os.walk(os.environ["HOME"]):
    for name in files:
        print(open(os.path.join(root, name), errors="replace").read())
code = "print(SAID)\\ndef double(n):\\n    assert n == 0, SAID\\n    return 0\\n"
open("double.py", "w").write("SAID = " + repr(said) + "\\n" + code)
open("notes.txt", "w").write(said)
END
"""


def agents_door(world: World) -> None:
    """Run `bakeoff agents` with an agent behind the meter, and its leaderboard."""
    meter = {"openai": {"env": {"OPENAI_BASE_URL": "{meterUrl}", "OPENAI_API_KEY": "{meterToken}"}}}
    with ExitStack() as stack:
        provider, given, words = _with_agent(world, stack, {"meter": meter})
        options = ("--rounds", "3", "--replay", "auto", "--trace", "--show-progress", *REPORTS)
        world.run("agents", *words, *options, env=given)
        world.run("agents", *words, "--rounds", "1", "--json", env=given)
        world.run("agents", "agents", "leaderboard")
        world.run("agents", "agents", "leaderboard", "--json")
        keep_spans(world, "agents", provider)
    after_run(world, "agents", "results")


def login_door(world: World) -> None:
    """Run `bakeoff agents` with an agent that is given a key and the user's login."""
    with ExitStack() as stack:
        _, given, words = _with_agent(world, stack, {"home": {"login": [".canary"]}})
        world.run("login", *words, "--use-login", "--tries", "2", *REPORTS, env=given)
        world.run("login", "agents", "leaderboard")
    after_run(world, "login", "results")


def _with_agent(
    world: World, stack: ExitStack, settings: Mapping[str, object]
) -> tuple[Provider, dict[str, str], tuple[str, ...]]:
    """Return a provider, the variables of an agent that asks it, and the command line that runs the agent."""
    write_track(world.project / "track", double=DOUBLE)
    provider, variables = with_provider(world, stack)
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CANARY_AGENT_TOKEN")
    env = {"SAID_URL": f"{provider.url}/said", **{name: f"${{{name}}}" for name in names}}
    file = agent_file(world.project, "canary", _AGENT, defaultProvider="openai", env=env, **settings)
    world.ignore_files()
    options = ("--exercises", "track", "--sandbox", "process", "--timeout", "60", "--jobs", "1", "--no-open")
    given = {**variables, "CANARY_AGENT_TOKEN": AGENT.planted}
    return provider, given, ("agents", "run", "--agent", "canary", "--agent-file", str(file), *options)


EVALUATE = ("mcp", "evaluate", "quiet", "--no-open")
LOUD = "loud/mcp-testing-framework.yaml"


def mcp_door(world: World) -> None:
    """Run `bakeoff mcp` with servers whose configuration spells keys out.

    Plans hold what servers offer, and a plan with a key is refused: servers under evaluation repeat keys in results.
    """
    with ExitStack() as stack:
        provider, given = with_provider(world, stack)
        given["CANARY_SERVER_TOKEN"] = MCP["server variable"].planted
        for name, loud in (("loud", True), ("quiet", False)):
            server = world.project / f"{name}.py"
            write_server(server, world.said(), loud=loud)
            port = stack.enter_context(serving_mcp(world.said(), loud=loud))
            _write_suite(world, name, [_on_stdio(server), _on_web(port)])
        world.ignore_files()
        world.run("mcp", *EVALUATE, *REPORTS, "--trace", "--replay", "auto", codes=(1,), env=given)
        world.run("mcp", *EVALUATE, "--json", codes=(1,), env=given)
        world.run("mcp", "mcp", "evaluate", "loud", "--no-open", codes=(2,), name="a refused plan", env=given)
        for command in ("lint", "coverage", "generate"):
            world.run("mcp", "mcp", command, "loud", env=given)
        world.run("mcp", "mcp", "snapshot", "loud", "--output", "snapshot.json", codes=(0,), env=given)
        world.run("mcp", "mcp", "diff", "snapshot.json", "--config", LOUD, env=given)
        _look_at_servers(world, "mcp", ("--config", LOUD), given)
        keep_spans(world, "mcp", provider)
    after_run(world, "mcp", "results")


def header_door(world: World) -> None:
    """Run `bakeoff mcp` with a key in `--header`."""
    header = ("--header", HEADER.planted)
    with ExitStack() as stack:
        _, given = with_provider(world, stack)
        quiet = stack.enter_context(serving_mcp(world.said(), loud=False))
        loud = stack.enter_context(serving_mcp(world.said(), loud=True))
        _write_suite(world, "quiet", [{"name": "web", "url": f"http://127.0.0.1:{quiet}/mcp"}])
        world.ignore_files()
        world.run("header", *EVALUATE, *header, codes=(1,), env=given)
        url = ("--url", f"http://127.0.0.1:{loud}/mcp", *header)
        drafted = ("--model", "openai:gpt-4o", "--output", "draft.yaml")
        world.run("header", "mcp", "generate", *url, codes=(0,), env=given)
        world.run("header", "mcp", "generate", *drafted, *url, codes=(0,), env=given)
        world.run("header", "mcp", "snapshot", *url, "--output", "snapshot.json", codes=(0,), env=given)
        _look_at_servers(world, "header", url, given)
    after_run(world, "header", "results")


def token_door(world: World) -> None:
    """Run `bakeoff mcp` with a server that gets a token from a file. Nobody else can repeat it."""
    file = world.folder / "home" / "token"
    file.write_text(TOKEN.planted)
    with ExitStack() as stack:
        _, given = with_provider(world, stack, without=[TOKEN])
        for name, loud in (("loud", True), ("quiet", False)):
            port = stack.enter_context(serving_mcp(world.said(), loud=loud))
            url = f"http://127.0.0.1:{port}/mcp"
            _write_suite(world, name, [{"name": "web", "url": url, "oauth": {"tokenFile": str(file)}}])
        world.ignore_files()
        world.run("token", *EVALUATE, codes=(1,), env=given)
        world.run("token", "mcp", "snapshot", "loud", "--output", "snapshot.json", codes=(0,), env=given)
        world.run("token", "mcp", "generate", "loud", codes=(0,), env=given)
        _look_at_servers(world, "token", ("--config", LOUD), given)
    after_run(world, "token", "results")


def _look_at_servers(world: World, door: str, options: Sequence[str], given: Mapping[str, str]) -> None:
    """Have commands show what servers offer."""
    world.run(door, "mcp", "list", *options, codes=(0,), env=given)
    world.run(door, "mcp", "list", "--json", *options, codes=(0,), env=given)


def _on_stdio(server: Path) -> dict[str, object]:
    planted = {name: source.planted for name, source in MCP.items()}
    arguments = [str(server), "--api-key", planted["server argument"], planted["server argument="]]
    arguments += ["--database", planted["server argument URL"], "--secret", "${CANARY_SERVER_TOKEN}"]
    env = {"SERVER_TOKEN": planted["server env"], "SERVER_DB": planted["server env URL"]}
    return {"name": "stdio", "command": sys.executable, "args": arguments, "env": env}


def _on_web(port: int) -> dict[str, object]:
    planted = {name: source.planted for name, source in MCP.items()}
    url = f"http://{planted['server URL password']}127.0.0.1:{port}/mcp{planted['server URL query']}"
    headers = {"Authorization": planted["server bearer header"], "X-Own": planted["server header"]}
    return {"name": "web", "url": url, "headers": headers}


def _write_suite(world: World, name: str, servers: Sequence[Mapping[str, object]], **more: object) -> None:
    """Write a configuration whose only case lets the model call all tools, in a folder of its own."""
    tell = {"serverName": servers[0]["name"], "toolName": "tell", "parameters": {"encoding": "plain"}}
    suite = {
        "modelsToTest": ["openai:gpt-4o"],
        "mode": "agent",
        "testRound": 3,
        "concurrencyLimit": 1,
        "testCases": [{"prompt": "Tell it.", "expectedOutput": tell}],
        "mcpServers": servers,
        **more,
    }
    (world.project / name).mkdir()
    (world.project / name / "mcp-testing-framework.yaml").write_text(json.dumps(suite))


_SPEAKER = """
import json, logging, os, pathlib, sys, warnings
SAID = json.loads(pathlib.Path(os.environ["CANARY_FILE"]).read_text())
"""
_TESTS = (
    _SPEAKER
    + """
import httpx2, openai, pytest
from bakeoff import Score, TaskResult, ToolCall, describe_eval, replayable

EVERYTHING = "\\n".join(SAID.values())

def tell(given):
    return Score(name="tell", value=0.0, reason="it said " + given.output, metadata={"said": given.output})

@replayable
def tool(encoding):
    return {"said": SAID[encoding]}

def task(case):
    said = tool(case)["said"]
    print(said)
    logging.getLogger("app").error("logged %s", said)
    with httpx2.Client(trust_env=False) as client:
        sent = {"said": said}
        client.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json={"model": "m", "messages": [], **sent},
                    headers={"Authorization": os.environ["CANARY_REQUEST"], "X-Said": "plain"})
    return TaskResult(result=said, tool_calls=[ToolCall(name="t", arguments={"k": said}, result=[said])])

test_said = describe_eval("said", data=[{"input": name, "name": name} for name in SAID], task=task, scorers=[tell])

@pytest.mark.parametrize("name", SAID)
def test_fails(name, record_property):
    said = SAID[name]
    print(said); print(said, file=sys.stderr)
    warnings.warn("warned of " + said)
    record_property("said", said)
    raise AssertionError("failed with " + said)

@pytest.mark.parametrize("said", [said for said in SAID.values() if said.replace("\\n", "").isprintable()])
def test_named(said):
    pass

def test_chained():
    try:
        raise LookupError(EVERYTHING)
    except LookupError as error:
        raise RuntimeError(EVERYTHING) from error

def test_skipped():
    pytest.skip(EVERYTHING)

@pytest.mark.xfail(reason=SAID["plain"])
def test_expected():
    assert SAID == {}
"""
)


def pytest_door(world: World, options: Sequence[str] = PYTEST) -> None:
    """Run pytest with evals whose calls are recorded, then again from the recordings."""
    (world.project / "test_canaries.py").write_text(_TESTS)
    world.ignore_files()
    with ExitStack() as stack:
        _, variables = with_provider(world, stack)
        given = {**variables, "CANARY_REQUEST": REQUEST.planted}
        command = (sys.executable, "-m", "pytest", *options)
        world.run("pytest", *command, "--eval-replay=auto", "--log-file=log.txt", name="pytest", codes=(1,), env=given)
        world.run(
            "pytest", *command, "--eval-replay=strict", "-p", "no:cacheprovider", name="replay", codes=(1,), env=given
        )
        world.run("pytest", *command, "-s", "--tb=native", name="pytest -s", codes=(1,), env=given)
    after_run(world, "pytest", "results")
    world.run("pytest", "merge", "evals.json", "--output", "merged.json", "--html", "merged.html", codes=(0, 1, 2, 3))


_READER = (
    _SPEAKER
    + """
class Crash(BaseException):
    pass

class Reader:
    what = "nothing"
    def recognises(self, path):
        error = Crash if os.environ.get("CANARY_CRASHES") else LookupError
        raise error("\\n".join(SAID.values()))
"""
)
_PROVIDER = _SPEAKER + 'raise RuntimeError("cannot start with " + "\\n".join(SAID.values()))\n'


def errors_door(world: World) -> None:
    """Have the command line fail: a crash in a reader that a package adds, an import error, wrong usage."""
    package = world.project / "packages"
    about = package / "canary_reader-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Name: canary-reader\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[bakeoff.readers]\ncanary = canary_reader:Reader\n")
    (package / "canary_reader.py").write_text(_READER)
    (world.project / "anything.json").write_text("{}")
    settings = {"modelsToTest": ["canary:m"], "providers": {"canary": "canary_provider:Provider"}}
    _write_suite(world, "broken", [{"name": "s", "command": "true"}], **settings)
    (world.project / "broken" / "canary_provider.py").write_text(_PROVIDER)
    world.ignore_files()
    cold = (sys.executable, "-m", "bakeoff")
    read, path = (*cold, "report", "anything.json", "--no-open"), {"PYTHONPATH": str(package)}
    world.run("errors", *read, codes=(2,), name="a broken reader", env=path)
    world.run("errors", *read, codes=(70,), name="a crash", env={**path, "CANARY_CRASHES": "1"})
    world.run("errors", "mcp", "evaluate", "broken", codes=(2,), name="an import error")
    for wrong in (" ".join(source.planted for source in world.sources), "".join(world.said()["hex"].split())[:4000]):
        world.run("errors", *cold, "runs", "show", wrong, codes=(2,), name="wrong usage")
        world.run("errors", wrong, codes=(2,), name="a wrong command")


DOORS: dict[str, Callable[[World], None]] = {
    "run": run_door,
    "agents": agents_door,
    "login": login_door,
    "mcp": mcp_door,
    "header": header_door,
    "token": token_door,
    "pytest": pytest_door,
    "errors": errors_door,
}


def sources_of(door: str, *, long: bool) -> Iterator[Source]:
    """Yield the control, first because long texts are cut, and the keys that are planted for a door."""
    yield CONTROL
    shared = (*VARIABLES.values(), *FILES.values())
    yield from (source for source in shared if long or source.name in BOUNDED)
    own = {"run": [MCP["server variable"]], "agents": [AGENT], "login": [AGENT, LOGIN], "mcp": [*MCP.values()]}
    own |= {"header": [HEADER], "token": [TOKEN], "pytest": [REQUEST]}
    yield from own.get(door, ())
