"""Implement `bakeoff doctor`: check what is installed, and say how to get what is missing."""

import asyncio
import importlib.util
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.text import Text

from bakeoff._kernel.environment import cache_folder, read_environment
from bakeoff._kernel.files import folder_size, in_megabytes
from bakeoff._version import __version__
from bakeoff.cli.console import add_row, out, print_json, table
from bakeoff.cli.declare import command, group_of
from bakeoff.cli.flags import AsJson, Results
from bakeoff.errors import UsageError

app = group_of()

_PREFIXES = ("OPENAI", "ANTHROPIC", "GEMINI", "DEEPSEEK", "OPENROUTER", "GROQ", "MISTRAL", "XAI")
KEYS = ("AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN", *(f"{prefix}_API_KEY" for prefix in _PREFIXES))
_ENOUGH_DISK = 2 * 1024**3
_OLDEST_NODE = 20


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check. `advice` is empty if nothing needs to be done."""

    what: str
    ok: bool
    found: str
    advice: str = ""


@command(app, "doctor")
def show_health(*, as_json: AsJson = False, results: Results = Path("results")) -> None:
    """Check this machine: what is installed, what is missing, and how to get it.

    Example: bakeoff doctor --json
    """
    findings = list(look(results))
    if as_json:
        print_json([asdict(finding) for finding in findings])
        return
    shown = table("", "what", "found", "what to do")
    for finding in findings:
        mark = Text("ok", style="green") if finding.ok else Text("--", style="yellow")
        add_row(shown, mark, finding.what, finding.found, Text(finding.advice))
    out().print(shown)


def look(results: Path) -> Iterator[DoctorFinding]:
    """Check everything that commands may need, and yield the results."""

    from bakeoff.sandbox import available

    yield DoctorFinding("bakeoff", True, __version__)
    yield DoctorFinding("Python", True, platform.python_version())  # no older one than we need could run this
    yield _node()
    yield _browser()
    yield from (DoctorFinding(f"sandbox: {kind.name}", kind.ok, kind.detail, kind.way_out) for kind in available())
    yield _disk(results)
    cache = cache_folder()
    yield DoctorFinding("cache", True, f"{in_megabytes(folder_size(cache))} in {cache}; it may be deleted")
    for extra, module, use in (
        ("local", "xllamacpp", "run a model on this machine, without a key"),
        ("ray", "ray", "spread a run over several machines"),
        ("otel", "opentelemetry.sdk", "send traces"),
    ):
        parent = module.partition(".")[0]
        here = importlib.util.find_spec(parent) is not None and importlib.util.find_spec(module) is not None
        advice = "" if here else f"pip install 'bakeoff[{extra}]' to {use}"
        yield DoctorFinding(f"extra: {extra}", here, "installed" if here else "not installed", advice)
    yield _keys()
    yield from _agents()


def _agents() -> Iterator[DoctorFinding]:
    """Try each installed coding agent in the sandbox that a run would choose."""
    from bakeoff.doors.agents.agents import agent_statuses, known_agents
    from bakeoff.sandbox import choose_sandbox

    try:
        statuses = asyncio.run(agent_statuses(known_agents(), choose_sandbox()))
    except UsageError:  # no sandbox, or an .env that cannot be read: said above
        return
    for agent in statuses:
        if agent.installed:
            advice = f"reinstall it, {agent.install}, or try another --sandbox" if agent.problem else ""
            found = agent.problem or agent.version or ""
            yield DoctorFinding(f"agent: {agent.name}", agent.problem is None, found, advice)


def _node() -> DoctorFinding:
    advice = f"install Node {_OLDEST_NODE} or newer, for suites that use Vitest"
    version = _ask("node", "--version")
    if version is None:
        return DoctorFinding("Node", False, "not found", advice)
    major = version.lstrip("v").partition(".")[0]
    ok = major.isdigit() and int(major) >= _OLDEST_NODE
    return DoctorFinding("Node", ok, version, "" if ok else advice)


def _browser() -> DoctorFinding:
    for program in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(program):
            return DoctorFinding("browser", True, _ask(program, "--version") or program)
    return DoctorFinding("browser", False, "not found", "apt-get install chromium, for the tests that look at pages")


def _disk(results: Path) -> DoctorFinding:
    try:
        results = results.absolute()
    except FileNotFoundError:
        return DoctorFinding("disk", False, "the current folder has been deleted", "change to a folder that exists")
    folder = next(path for path in (results, *results.parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    advice = f"free some space: with less than {_ENOUGH_DISK / 1024**3:.0f} GiB a long run may fail"
    enough = free >= _ENOUGH_DISK
    return DoctorFinding("disk", enough, f"{free / 1024**3:.1f} GiB free", "" if enough else advice)


def _keys() -> DoctorFinding:
    try:
        environment = read_environment()
    except UsageError as error:
        return DoctorFinding("keys", False, str(error), "correct the file")
    found = [name for name in KEYS if environment.get(name)]
    advice = "" if found else "set the API key of a provider to use its models; the demo needs none"
    return DoctorFinding("keys", bool(found), ", ".join(found) or "none", advice)


def _ask(*command: str) -> str | None:
    """Return the first line that a command prints, or None if it fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().partition("\n")[0] or None
