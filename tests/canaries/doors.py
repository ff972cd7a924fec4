"""Run each door with keys planted, have them repeated, and keep everything that it prints and sends."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

from tests.canaries.encodings import ENCODINGS
from tests.canaries.peers import Provider, serving_mcp, write_server
from tests.canaries.sources import AGENT, BOUNDED, CONTROL, FILES, LOGIN, MCP, REQUEST, VARIABLES, Source
from tests.doors.components.small_suites import ADDER, write_suites
from tests.doors.exercises.small_tracks import DOUBLE, agent_file, write_track
from tests.warm_bakeoff import WarmBakeoff

PYTEST = ("-v", "-rA", "-l", "--junitxml=junit.xml", "--eval-json=evals.json", "--eval-html=evals.html")
FORMATS = ("csv", "parquet", "inspect", "junit", "github", "markdown", "badge")


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that left Bakeoff, and where."""

    door: str
    place: str
    data: bytes


@dataclass
class World:
    """A project with keys in all places, the peers that repeat them, and what came out.

    Attributes:
        folder: Holds the home, the temporary folder, and the repository with the project.
        sources: The keys that are planted.
        warm: Runs commands in forks of a process that has made its imports.
        long: Whether to run every command, or only those that make new outputs.
        outputs: What was printed, served and sent until now.
    """

    folder: Path
    sources: Sequence[Source]
    warm: WarmBakeoff
    long: bool = True
    outputs: list[Output] = field(default_factory=list)
    _seen: dict[Path, tuple[int, int]] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.folder / "repository" / "project"

    @property
    def said(self) -> dict[str, str]:
        """Return a text for each encoding, with the keys of all sources, alone and as they were planted."""
        return {
            name: "\n".join(
                f"[{number}] {encode(text)}"
                for number, source in enumerate(self.sources)
                for text in dict.fromkeys((source.key, source.planted))
            )
            for name, encode in ENCODINGS.items()
        }

    def build(self) -> None:
        """Write the project, the home and the files with keys."""
        for folder in (self.project, self.folder / "home" / ".canary", self.folder / "tmp", self.folder / "outside"):
            folder.mkdir(parents=True)
        for path, source in FILES.items():
            (self.folder / "repository" / path).write_text(f"{source.name}={source.planted}\n")
        (self.folder / "home" / ".canary" / "login.json").write_text(LOGIN.planted)
        (self.folder / "repository" / ".git").mkdir()
        self.spoken.write_text(json.dumps(self.said))

    @property
    def spoken(self) -> Path:
        """Return the file from which code of the project reads what to repeat. It is no output."""
        return self.folder / "outside" / "spoken.json"

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "BAKEOFF_"))
        }
        planted = {name: source.planted for name, source in VARIABLES.items() if source in self.sources}
        own = {"HOME": "home", "TMPDIR": "tmp", "XDG_STATE_HOME": "home/state", "XDG_CACHE_HOME": "home/cache"}
        places = {name: str(self.folder / place) for name, place in own.items()}
        return {**kept, **planted, **places, "NO_PROXY": "*", "CANARY_FILE": str(self.spoken), **more}

    def run(self, door: str, *words: str, codes: Sequence[int] = (0, 1), name: str = "", **more: str) -> None:
        """Run a program in the project, and keep what it prints and writes.

        Raises `AssertionError` for another exit code than these: then, keys were not repeated.
        """
        if words[0] == sys.executable:
            options = {"cwd": self.project, "env": self.environment(more), "timeout": 300, "check": False}
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", **options)
        else:
            done = self.warm.run(*words, cwd=self.project, env=self.environment(more), timeout=300)
        called = name or " ".join(words[:2])
        for stream, data in (("stdout", done.stdout), ("stderr", done.stderr)):
            self.outputs.append(Output(door, f"{stream} of {called}", data.encode()))
        self.keep_files(door)
        said = f"{done.stdout[-1500:]!r} {done.stderr[-1500:]!r}"
        assert done.returncode in codes, f"{called} exited with {done.returncode}: {said}"

    def keep_files(self, door: str) -> None:
        """Keep each file that is new or has changed."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_dir() or path.is_symlink() or path.suffix == ".pyc" or path.is_relative_to(self.spoken.parent):
                continue
            about = path.stat()
            if self._seen.get(path) != (about.st_mtime_ns, about.st_size):
                self._seen[path] = (about.st_mtime_ns, about.st_size)
                self.outputs.append(Output(door, str(path.relative_to(self.folder)), path.read_bytes()))
                self.outputs.append(Output(door, "names of files", str(path.relative_to(self.folder)).encode()))

    def ignore_files(self) -> None:
        """Take the files that are there now for input."""
        before = len(self.outputs)
        self.keep_files("")
        del self.outputs[before:]


def after_run(world: World, door: str, results: str) -> None:
    """Have the commands that show or convert a run do so, and ask the viewer for its pages."""
    options = ("--results", results)
    world.run(door, "runs", "show", *options)
    world.run(door, "report", *options, "--no-open", "--output", f"{door}.html")
    world.run(door, "index", *options)
    for format in FORMATS if world.long else ("csv", "inspect"):
        world.run(door, "export", *options, "--format", format, "--output", f"{door}.{format}", codes=(0, 2))
    if world.long:
        world.run(door, "runs", "list", *options)
        world.run(door, "runs", "show", *options, "--json")
        world.run(door, "runs", "check", *options)
        world.run(door, "build", *options)
        world.run(door, "leaderboard", *options, codes=(0, 1, 2, 3))
        world.run(door, "compare", "latest", "latest", *options, codes=(0, 1, 2, 3))
        world.run(door, "rescore", *options, "--no-open", codes=(0, 1, 2, 3))
        world.run(door, "export", *options, "--format", "csv", name="export to stdout")
    view(world, door, results)


def view(world: World, door: str, results: str) -> None:
    """Keep what the viewer answers: the index, each run, and the start of the streams of events."""
    command = [sys.executable, "-m", "bakeoff", "view", "--results", results, "--no-open"]
    with subprocess.Popen(
        command, cwd=world.project, env=world.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as viewer:
        assert viewer.stdout is not None
        line = viewer.stdout.readline()
        try:
            address = next(word for word in line.decode().split() if word.startswith("http://"))
            base, _, token = address.partition("/?")
            runs = [path.parent.name for path in (world.project / results / "runs").glob("*/plan.json")]
            opener = build_opener(HTTPCookieProcessor())  # the token becomes a cookie
            for page in (f"/?{token}", *(f"/runs/{name}" for name in runs)):
                with opener.open(base + page, timeout=60) as answer:
                    world.outputs.append(Output(door, f"viewer{page}", answer.read() + str(answer.headers).encode()))
            for page in ("/events", *(f"/runs/{name}/events" for name in runs)):
                with opener.open(base + page, timeout=60) as answer:
                    world.outputs.append(Output(door, f"viewer{page}", answer.read1(1 << 20)))
        finally:
            viewer.terminate()
            rest, errors = viewer.communicate(timeout=30)
        world.outputs.append(Output(door, "stdout of view", line + rest))
        world.outputs.append(Output(door, "stderr of view", errors))


def with_provider(world: World, stack: ExitStack) -> tuple[Provider, dict[str, str]]:
    """Start the provider, and return it with the variables that lead to it and to its collector of spans."""
    provider = Provider(world.said)
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


REPORTS = ("--junit", "junit.xml", "--markdown", "summary.md", "--github", "--no-open")


def run_door(world: World) -> None:
    """Run `bakeoff run`: a model as coding agent, with tools and MCP servers."""
    write_suites(world.project / "tests", adder=ADDER)
    server = world.project / "server.py"
    write_server(server, world.said, loud=True)
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
        )
        world.run("run", *words, "--rounds", "3", "--jobs", "1", "--trace", *REPORTS, **variables, **given)
        world.run("run", *words, "--rounds", "1", "--replay", "auto", "--json", "--no-open", **variables, **given)
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
open("double.py", "w").write(f"SAID = {{said!r}}\\n{{code}}")
open("notes.txt", "w").write(said)
END
"""


def agents_door(world: World) -> None:
    """Run `bakeoff agents` with an agent behind the meter, and its leaderboard."""
    meter = {"openai": {"env": {"OPENAI_BASE_URL": "{meterUrl}", "OPENAI_API_KEY": "{meterToken}"}}}
    with ExitStack() as stack:
        provider, given, words = _with_agent(world, stack, {"meter": meter})
        world.run("agents", *words, "--rounds", "3", "--replay", "auto", "--trace", "--show-progress", **given)
        world.run("agents", *words, "--rounds", "1", "--json", **given)
        world.run("agents", "agents", "leaderboard")
        world.run("agents", "agents", "leaderboard", "--json")
        keep_spans(world, "agents", provider)
    after_run(world, "agents", "results")


def login_door(world: World) -> None:
    """Run `bakeoff agents` with an agent that is given a key and the user's login."""
    with ExitStack() as stack:
        _, given, words = _with_agent(world, stack, {"home": {"login": [".canary"]}})
        world.run("login", *words, "--use-login", "--tries", "2", **given)
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
    options = ("--exercises", "track", "--sandbox", "process", "--timeout", "60", "--jobs", "1", *REPORTS)
    given = {**variables, "CANARY_AGENT_TOKEN": AGENT.planted}
    return provider, given, ("agents", "run", "--agent", "canary", "--agent-file", str(file), *options)


def mcp_door(world: World) -> None:
    """Run `bakeoff mcp`: evaluate, and every command that shows or drafts something of servers.

    Plans hold what servers offer, and a plan with a key is refused: servers under evaluation repeat keys in results.
    """
    token = world.folder / "home" / "token"
    token.write_text(MCP["server token file"].planted)
    given = {"CANARY_SERVER_TOKEN": MCP["server variable"].planted}
    with ExitStack() as stack:
        provider, variables = with_provider(world, stack)
        for name, loud in (("loud", True), ("quiet", False)):
            server = world.project / f"{name}.py"
            write_server(server, world.said, loud=loud)
            port = stack.enter_context(serving_mcp(world.said, loud=loud))
            (world.project / name).mkdir()
            (world.project / name / "mcp-testing-framework.yaml").write_text(json.dumps(_suite(server, token, port)))
            given[name.upper()] = f"http://127.0.0.1:{port}/mcp"
        world.ignore_files()
        given |= variables
        header = ("--header", MCP["--header"].planted)
        reports = ("--junit", "junit.xml", "--markdown", "summary.md", "--github", "--no-open")
        world.run("mcp", "mcp", "evaluate", "quiet", *reports, "--trace", "--replay", "auto", codes=(1,), **given)
        world.run("mcp", "mcp", "evaluate", "quiet", *header, "--json", "--no-open", codes=(1,), **given)
        world.run("mcp", "mcp", "evaluate", "loud", *reports, codes=(2,), **given)
        look_at_servers(world, header, given)
        url = ("--url", given["LOUD"], *header)
        world.run("mcp", "mcp", "generate", *url, codes=(0,), **given)
        drafted = ("--model", "openai:gpt-4o", "--output", "draft.yaml")
        world.run("mcp", "mcp", "generate", *drafted, *url, codes=(0,), **given)
        keep_spans(world, "mcp", provider)
    after_run(world, "mcp", "results")


def look_at_servers(world: World, header: Sequence[str], given: Mapping[str, str]) -> None:
    """Have every command show what servers offer and answer."""
    config = ("--config", "loud/mcp-testing-framework.yaml")
    world.run("mcp", "mcp", "list", *config, codes=(0,), **given)
    world.run("mcp", "mcp", "list", "stdio", *config, codes=(0,), **given)
    world.run("mcp", "mcp", "list", "--json", *header, *config, codes=(0,), **given)
    for name in ("stdio", "web", "tokened"):
        call = ("mcp", "call", *config)
        world.run("mcp", *call, f"{name}/tell", "--no-check", **given)
        world.run("mcp", *call, f"{name}/tell", "--json", *(header if name == "web" else ()), **given)
        world.run("mcp", *call, f"{name}/fail", **given)
        world.run("mcp", *call, f"{name}/tell", "encoding=protocol error", codes=(0, 1, 3), **given)
    world.run("mcp", "mcp", "snapshot", "loud", "--output", "snapshot.json", codes=(0,), **given)
    world.run("mcp", "mcp", "diff", "snapshot.json", *config, codes=(0, 1), **given)
    world.run("mcp", "mcp", "lint", "loud", codes=(0, 1), **given)
    world.run("mcp", "mcp", "coverage", "loud", codes=(0, 1), **given)
    world.run("mcp", "mcp", "generate", "loud", codes=(0,), **given)


def _suite(server: Path, token: Path, port: int) -> dict[str, object]:
    planted = {name: source.planted for name, source in MCP.items()}
    web = f"http://{planted['server URL password']}127.0.0.1:{port}/mcp{planted['server URL query']}"
    arguments = [str(server), "--api-key", planted["server argument"], planted["server argument="]]
    arguments += ["--database", planted["server argument URL"], "--secret", "${CANARY_SERVER_TOKEN}"]
    tell = {"serverName": "stdio", "toolName": "tell", "parameters": {"encoding": "plain"}}
    return {
        "modelsToTest": ["openai:gpt-4o"],
        "mode": "agent",
        "testRound": 3,
        "concurrencyLimit": 1,
        "testCases": [{"prompt": "Tell it.", "expectedOutput": tell}],
        "mcpServers": [
            {
                "name": "stdio",
                "command": sys.executable,
                "args": arguments,
                "env": {"SERVER_TOKEN": planted["server env"], "SERVER_DB": planted["server env URL"]},
            },
            {
                "name": "web",
                "url": web,
                "headers": {"Authorization": planted["server bearer header"], "X-Own": planted["server header"]},
            },
            {"name": "tokened", "url": f"http://127.0.0.1:{port}/mcp", "oauth": {"tokenFile": str(token)}},
        ],
    }


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
        world.run("pytest", *command, "--eval-replay=auto", "--log-file=log.txt", name="pytest", codes=(1,), **given)
        world.run(
            "pytest", *command, "--eval-replay=strict", "-p", "no:cacheprovider", name="replay", codes=(1,), **given
        )
        world.run("pytest", *command, "-s", "--tb=native", name="pytest -s", codes=(1,), **given)
    after_run(world, "pytest", ".bakeoff")
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
    (world.project / "canary_provider.py").write_text(_PROVIDER)
    (world.project / "anything.json").write_text("{}")
    suite = _suite(world.project / "server.py", world.folder / "home" / "token", 1)
    suite |= {"modelsToTest": ["canary:m"], "providers": {"canary": "canary_provider:Provider"}}
    (world.project / "broken.yaml").write_text(json.dumps(suite))
    world.ignore_files()
    cold = (sys.executable, "-m", "bakeoff")
    read, path = (*cold, "report", "anything.json", "--no-open"), {"PYTHONPATH": str(package)}
    world.run("errors", *read, codes=(2,), name="a broken reader", **path)
    world.run("errors", *read, codes=(70,), name="a crash", **path, CANARY_CRASHES="1")
    given = {"CANARY_SERVER_TOKEN": MCP["server variable"].planted}
    world.run("errors", "mcp", "evaluate", "broken.yaml", codes=(2,), name="an import error", **given)
    for wrong in (" ".join(source.planted for source in world.sources), "".join(world.said["hex"].split())[:4000]):
        world.run("errors", *cold, "runs", "show", wrong, codes=(2,), name="wrong usage")
        world.run("errors", wrong, codes=(2,), name="a wrong command")


DOORS: dict[str, Callable[[World], None]] = {
    "run": run_door,
    "agents": agents_door,
    "login": login_door,
    "mcp": mcp_door,
    "pytest": pytest_door,
    "errors": errors_door,
}


def sources_of(door: str, *, long: bool) -> Iterator[Source]:
    """Yield the keys that are planted for a door, and the control."""
    shared = (*VARIABLES.values(), *FILES.values())
    yield from (source for source in shared if long or source.name in BOUNDED)
    own = {"mcp": tuple(MCP.values()), "run": (MCP["server variable"],), "agents": (AGENT,), "login": (AGENT, LOGIN)}
    yield from own.get(door, ())
    if door == "pytest":
        yield REQUEST
    yield CONTROL
