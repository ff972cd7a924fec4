"""What tests of MCP evaluations share: small servers, a configuration to fill in, and an evaluation of it."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.config import McpSuite, read_suite
from bakeoff.doors.mcp.plan import EvaluationRequest
from bakeoff.doors.mcp.results.report import McpReport, RoundDetail
from bakeoff.mcp import ServerSpec
from bakeoff.options import RunOptions

from ...mcp.conftest import cache, everything, everything_at, fetched, time_server
from ...models.conftest import nobody
from ...models.loopback import Loopback

__all__ = ["cache", "everything", "everything_at", "nobody", "time_server"]

SERVERS = Path(__file__).with_name("servers")
GIT = ("mcp-server-git==2026.10.19", "gitpython==3.2.1", "gitdb==4.0.12", "smmap==5.0.3")

BMI: dict[str, Any] = {
    "serverName": "health",
    "toolName": "calculate-bmi",
    "parameters": {"weightKg": 90, "heightM": 1.8},
}
NOTE: dict[str, Any] = {"serverName": "notes", "toolName": "add-note", "parameters": {"text": "milk"}}

Evaluate = Callable[..., McpReport]


def desk(name: str, *more: str | Path) -> dict[str, Any]:
    """One of the servers of servers/desk.py, as a configuration has it."""
    words = [str(SERVERS / "desk.py"), name, *map(str, more)]
    written = {"writable": [str(Path(more[0]).parent)]} if more else {}  # where it notes that it was started
    return {"name": name, "command": sys.executable, "args": words, **written}


def call(**fields: Any) -> str:
    return json.dumps(fields)


def details(report: McpReport, case: int = 0, model: int = 0) -> tuple[RoundDetail, ...]:
    return report.results[case].modelResults[model].details


def content(detail: RoundDetail) -> Any:
    """Return what the one executed tool gave."""
    result = detail.toolExecutionResult
    assert isinstance(result, dict)
    assert result["success"] is True
    return result["content"]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., McpSuite]:
    """Read a configuration from its text."""

    def read(text: str | bytes, **environment: str) -> McpSuite:
        file = tmp_path / "suite.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_suite(file, environment)

    return read


@pytest.fixture(scope="session")
def git_server(cache: Path) -> Callable[[Path], ServerSpec]:
    """mcp-server-git for a repository; it works with our SDK and so needs only its own files beside it."""
    folder = fetched(
        cache / GIT[0].replace("==", "-"),
        lambda into: [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(into), *GIT],
    )

    def spec(repository: Path) -> ServerSpec:
        argv = ("-m", "mcp_server_git", "-r", str(repository))
        return ServerSpec(name="git", command=sys.executable, args=argv, env={"PYTHONPATH": str(folder)})

    return spec


@pytest.fixture
def write_suite(nobody: None) -> Callable[..., Path]:
    """A configuration in the current folder: JSON, which is YAML too."""

    def write(file: str = "mcp-testing-framework.yaml", **fields: Any) -> Path:
        usual: dict[str, Any] = {
            "testRound": 1,
            "passThreshold": 1,
            "modelsToTest": [f"scripted:{call(**BMI)}"],
            "testCases": [{"prompt": "BMI?", "expectedOutput": BMI}],
            "mcpServers": [desk("health")],
            "retryConfig": {"maxRetries": 1, "baseDelay": 1, "maxDelay": 2},
        }
        path = Path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**usual, **fields}))
        return path

    return write


@pytest.fixture
def loopback(nobody: None) -> Iterator[Loopback]:
    server = Loopback()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def evaluated(write_suite: Callable[..., Path]) -> Evaluate:
    """The report of such a configuration."""

    def run(*, request: dict[str, Any] | None = None, options: RunOptions | None = None, **fields: Any) -> McpReport:
        asked = EvaluationRequest(path=write_suite(**fields), **(request or {}))
        return evaluate(asked, options=options)

    return run


@pytest.fixture
def script(nobody: None) -> Callable[..., str]:
    """`script(("BMI", "…reply…"), …)` is a model that answers prompts by what they hold."""

    def write(*replies: tuple[str, str | list[dict[str, Any]]], name: str = "script") -> str:
        written = [
            {"to": to, "say": reply} if isinstance(reply, str) else {"to": to, "call": reply} for to, reply in replies
        ]
        Path(f"{name}.json").write_text(json.dumps({"replies": written}))
        return f"scripted:{name}.json"

    return write
