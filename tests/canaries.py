"""Plant canary keys where keys come from, have them repeated in every promised encoding, and search every output.

`search` returns one `Finding` for each key that is readable in an output; promised is that there is none. The bounded
form plants two keys and runs pytest and the command line once; the long form plants a key in every source.
"""

import base64
import codecs
import gzip
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "lower case": str.lower,
    "upper case": str.upper,
    "spaces": " ".join,
    "dots": ".".join,
    "lines": "\n".join,
    "a list": lambda key: json.dumps(list(key)),
    "hex": lambda key: key.encode().hex(),
    "hex with colons": lambda key: key.encode().hex(":"),
    "0x": lambda key: ", ".join(f"0x{byte:02x}" for byte in key.encode()),
    "\\x": lambda key: "".join(f"\\x{byte:02x}" for byte in key.encode()),
    "decimal": lambda key: ", ".join(map(str, key.encode())),
    "octal": lambda key: "".join(f"\\{byte:03o}" for byte in key.encode()),
    "binary": lambda key: " ".join(f"{byte:08b}" for byte in key.encode()),
    "\\u": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "entities": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "hex entities": lambda key: "".join(f"&#x{ord(char):x};" for char in key),
    "percent": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "quoted-printable": lambda key: "".join(f"={byte:02X}" for byte in key.encode()),
    "zero-width": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "combining": "\u0336".join,
    "UTF-16": lambda key: key.encode("utf-16-le").decode("latin-1"),
    "UTF-32": lambda key: key.encode("utf-32-be").decode("latin-1"),
    "reversed": lambda key: key[::-1],
    "rot13": lambda key: codecs.encode(key, "rot13"),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of UTF-16": lambda key: base64.b64encode(key.encode("utf-16-le")).decode(),
    "base32": lambda key: base64.b32encode(key.encode()).decode(),
    "base85": lambda key: base64.b85encode(key.encode()).decode(),
    "ascii85": lambda key: base64.a85encode(key.encode()).decode(),
    "gzip in base64": lambda key: base64.b64encode(gzip.compress(f"the key is {key}".encode(), mtime=0)).decode(),
    "zlib in base64": lambda key: base64.b64encode(zlib.compress(f"the key is {key}".encode())).decode(),
    "coloured": lambda key: "".join(f"\x1b[31m{char}\x1b[0m" for char in key),
}
"""The promised encodings."""

SOURCES: dict[str, str] = {
    "OPENAI_API_KEY": "sk-Cn7ry0aQ5zWx8sEd3cRf6vTg1b",
    "DATABASE_URL": "postgres://app:Cn7ry1pQ5zWx8sEd3c@db.example:5432/app",
    "SENTRY_DSN": "https://cn7ry2a4f6e8d0b1c3a5f7e9@o1.ingest.example/42",
    "SLACK_WEBHOOK_URL": "https://hooks.example/services/T0CN7RY3/B0AAAAAA/Cn7ry3hQ5zWx8sEd3cRf",
    "HTTPS_PROXY": "http://me:Cn7ry4xQ5zWx8sEd3c@proxy.example:3128",
    "SERVICE_JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjbjdyeTUifQ.Cn7ry5jQ5zWx8sEd3cRf6vTg1b",
    "STRIPE_SK": "Cn7ry6kQ5zWx8sEd3cRf6vTg1b",
    "SIGNINGKEY": "Cn7ry7kQ5zWx8sEd3cRf6vTg1b",
    "SESSION_COOKIE": "Cn7ry8cQ5zWx8sEd3cRf6vTg1b",
    "UNNAMED": "ghp_Cn7ry9uQ5zWx8sEd3cRf6vTg1bYh",
}
"""A key for each kind of variable."""

FILES = {".env": "HERE_TOKEN=Cn7ryAeQ5zWx8sEd3cRf6vTg1b\n", "../.env": "ABOVE_TOKEN=Cn7ryBaQ5zWx8sEd3cRf6vTg1b\n"}
"""Files in the folder of the project and above it, with their keys."""

BOUNDED = ("OPENAI_API_KEY", "DATABASE_URL")
PYTEST = ("-v", "-rA", "-l", "--junitxml=junit.xml", "--eval-json=evals.json", "--eval-html=evals.html")

_SPEAKER = """
import json, logging, os, pathlib, sys, warnings
SAID = json.loads(pathlib.Path(os.environ["CANARY_FILE"]).read_text())
"""

_TESTS = (
    _SPEAKER
    + """
import pytest
from bakeoff import Score, TaskResult, ToolCall, describe_eval

def tell(given):
    return Score(name="tell", value=0.0, reason="it said " + given.output, metadata={"said": given.output})

def task(case):
    said = SAID[case]
    print(said)
    logging.getLogger("app").error("logged %s", said)
    return TaskResult(result=said, tool_calls=[ToolCall(name="t", arguments={"k": said}, result=[said])])

test_said = describe_eval("said", data=[{"input": name, "name": name} for name in SAID], task=task, scorers=[tell])

@pytest.mark.parametrize("name", SAID)
def test_fails(name, record_property):
    said = SAID[name]
    print(said); print(said, file=sys.stderr)
    warnings.warn("warned of " + said)
    record_property("said", said)
    raise AssertionError("failed with " + said)

@pytest.mark.parametrize("said", [said for said in SAID.values() if said.isprintable()])
def test_named(said):
    pass
"""
)

_SUBJECT = (
    _SPEAKER
    + """
def subject(prompt):
    return SAID[prompt]
if os.environ.get("CANARY_BREAKS"):
    raise RuntimeError("cannot start with " + " ".join(SAID.values()))
"""
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A key that is readable in an output."""

    source: str
    place: str
    encoding: str


def keys(sources: Sequence[str]) -> dict[str, str]:
    """Return the key of each source."""
    files = {path: text.partition("=")[2].strip() for path, text in FILES.items()}
    return {name: value for name, value in {**SOURCES, **files}.items() if name in sources}


def search(folder: Path, *, bounded: bool = True, options: Sequence[str] = PYTEST) -> list[Finding]:
    """Plant keys under `folder`, run pytest and the command line there, and return what is readable afterwards."""
    planted = keys(BOUNDED if bounded else [*SOURCES, *FILES])
    project = folder / "repository" / "project"
    project.mkdir(parents=True)
    for path, text in FILES.items():
        (project / path).write_text(text)
    said = {
        f"{source} in {encoding}".replace("/", " "): encode(key)
        for source, key in planted.items()
        for encoding, encode in ENCODINGS.items()
    }
    spoken = folder / "spoken.json"  # outside of the project: no output
    spoken.write_text(json.dumps(said))
    (project / "test_canaries.py").write_text(_TESTS)
    (project / "canary_subject.py").write_text(_SUBJECT)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment = {**inherited, **{name: key for name, key in planted.items() if name in SOURCES}}
    environment |= {"CANARY_FILE": str(spoken), "HOME": str(folder), "TMPDIR": str(folder), "NO_PROXY": "*"}
    outputs = dict(_outputs(project, environment, options))
    return [
        Finding(source, place, encoding)
        for source, key in planted.items()
        for encoding, encode in ENCODINGS.items()
        for place, text in outputs.items()
        if _core(encode(key), encoding) in text
    ]


def _core(encoded: str, encoding: str) -> str:
    """Return the part of an encoded key that does not depend on what stands beside it."""
    return encoded[4:-4] if encoding.startswith("base") else encoded


def _outputs(project: Path, environment: Mapping[str, str], options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Run everything, and yield the name and the text of each place that holds output."""
    program = [sys.executable, "-m", "bakeoff"]
    commands = {
        "pytest": [sys.executable, "-m", "pytest", *options],
        "runs show": [*program, "runs", "show", "--results", ".bakeoff"],
        "runs show as JSON": [*program, "runs", "show", "--results", ".bakeoff", "--json"],
        "report": [*program, "report", "--results", ".bakeoff", "--no-open", "--output", "report.html"],
        "export": [*program, "export", "--results", ".bakeoff", "--format", "csv", "--output", "export.csv"],
        "an error": [*program, "runs", "show", next(iter(SOURCES.values()))],
        "import error": [sys.executable, "-c", _IMPORT],
        "crash": [sys.executable, "-c", _CRASH],
    }
    for name, command in commands.items():
        broken = {"CANARY_BREAKS": "1"} if name == "import error" else {}
        done = subprocess.run(command, cwd=project, env={**environment, **broken}, capture_output=True, check=False)
        if done.returncode not in _EXPECTED[name]:
            raise RuntimeError(f"{name} exited with {done.returncode}: {done.stdout[-2000:]!r} {done.stderr[-2000:]!r}")
        yield f"stdout of {name}", done.stdout.decode("utf-8", "replace")
        yield f"stderr of {name}", done.stderr.decode("utf-8", "replace")
    sources = {"test_canaries.py", "canary_subject.py", ".env", "spoken.json"}
    for path in sorted(project.parents[1].rglob("*")):
        if path.is_file() and path.name not in sources and path.suffix != ".pyc":
            yield str(path.relative_to(project.parents[1])), path.read_bytes().decode("utf-8", "replace")


_EXPECTED = {
    **dict.fromkeys(("pytest", "runs show", "runs show as JSON", "report", "export"), (0, 1)),
    **dict.fromkeys(("an error", "import error"), (2,)),
    "crash": (70,),
}
"""Exit codes. With another one, the canaries were not said."""

_IMPORT = """
import sys
import bakeoff.cli.main as cli
from bakeoff._kernel.imports import import_object
cli.app.registered_callback.callback = None
def start(*args, **given): import_object("canary_subject:subject", "subject")
cli.typer.main.get_command = lambda group: start
cli.main()
"""

_CRASH = _IMPORT.replace(
    'def start(*args, **given): import_object("canary_subject:subject", "subject")',
    'def start(*args, **given): import canary_subject; raise LookupError(" ".join(canary_subject.SAID.values()))',
)


def table(findings: Sequence[Finding]) -> str:
    """Return the findings as lines: source, place, encoding."""
    return "\n".join(f"{one.source}\t{one.place}\t{one.encoding}" for one in findings) or "0 canaries"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as where:
        found = search(Path(where), bounded="--long" not in sys.argv)
    print(table(found))
    sys.exit(bool(found))
