"""The same work for Bakeoff and each peer: cases that echo their input after a pause, so many in flight, scored."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import scripts
from bench.peers.install import NODE_PEERS, Environment, install_peer


@dataclass(frozen=True, slots=True)
class Work:
    """The number of cases, the time of each, and how many may run at a time."""

    cases: int
    pause: float = 0.0
    at_once: int = 8


@dataclass(frozen=True, slots=True)
class Contender:
    """A tool in its environment.

    Args:
        files: what it reads, by name, in the folder that it runs in.
        command: started in that folder.
        says: a part of its output that shows that every case passed.
        logs: the folders in which it keeps its log; empty if it keeps none.
        concurrent: whether it can have several cases in flight.
    """

    name: str
    environment: Environment
    files: Callable[[Work], Mapping[str, str]]
    command: Callable[[Work], list[str]]
    says: Callable[[Work], str]
    logs: tuple[str, ...] = ()
    concurrent: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)


OURS = "bakeoff"
OUR_EVALS = "bakeoff, pytest"


def contenders() -> list[Contender]:
    """Return Bakeoff's two ways and every peer, installed where that was possible."""
    here = Environment(Path(sys.executable).parents[1], _our_version())
    made = [
        _python(OURS, here, scripts.BAKEOFF, logs=("run",)),
        Contender(
            OUR_EVALS,
            here,
            lambda work: {"test_echo.py": _filled(scripts.BAKEOFF_EVALS, work), "pytest.ini": "[pytest]\n"},
            lambda work: [*_PYTEST, "-p", "bakeoff.doors.pytest.plugin", f"--eval-jobs={work.at_once}"],
            lambda work: f"{work.cases} passed",
            logs=("results",),
            variables={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        ),
    ]
    return [*made, *(make(install_peer(name)) for name, make in _PEERS.items())]


def _our_version() -> str:
    from bakeoff import __version__

    return __version__


def _filled(script: str, work: Work) -> str:
    for name in ("cases", "pause", "at_once"):
        script = script.replace(f"<{name}>", f"{getattr(work, name):g}")
    return script


def _python(name: str, environment: Environment, script: str, logs: tuple[str, ...] = ()) -> Contender:
    return Contender(
        name,
        environment,
        lambda work: {"echo.py": _filled(script, work)},
        lambda _: [str(environment.folder / "bin" / "python"), "echo.py"],
        lambda work: f"{work.cases} passed",
        logs=logs,
        variables={"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_NO_INSPECT_PROMPT": "1", "CI": "1"},
    )


_PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def _bare_pytest(environment: Environment) -> Contender:
    return Contender(
        "pytest",
        environment,
        lambda work: {"test_echo.py": _filled(scripts.PYTEST, work), "pytest.ini": "[pytest]\n"},
        lambda _: [str(environment.folder / "bin" / "python"), *_PYTEST[1:]],
        lambda work: f"{work.cases} passed",
        concurrent=False,
    )


def _vitest_evals(environment: Environment) -> Contender:
    return Contender(
        "vitest-evals",
        environment,
        lambda work: {
            "echo.eval.ts": _filled(scripts.VITEST_EVALS, work),
            "vitest.config.mjs": _filled(scripts.VITEST_CONFIG, work),
        },
        lambda _: ["node", str(environment.folder / "node_modules/vitest/vitest.mjs"), "run"],
        lambda work: f"{work.cases} passed",
        variables={"NO_COLOR": "1", "CI": "1"},
    )


def _promptfoo(environment: Environment) -> Contender:
    program = str(environment.folder / "node_modules/promptfoo/dist/src/main.js")
    options = ["eval", "-c", "config.json", "--no-progress-bar", "--no-table", "--no-cache", "-j"]
    off = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
    return Contender(
        "promptfoo",
        environment,
        lambda work: {"echo.mjs": _filled(scripts.PROMPTFOO_PROVIDER, work), "config.json": _promptfoo_config(work)},
        lambda work: ["node", program, *options, str(work.at_once)],
        lambda work: f"{work.cases:,} passed",
        logs=("log",),
        variables={"PROMPTFOO_CONFIG_DIR": "log", **{f"PROMPTFOO_DISABLE_{name}": "1" for name in off}},
    )


def _promptfoo_config(work: Work) -> str:
    tests = [
        {"vars": {"q": f"say {n}"}, "assert": [{"type": "equals", "value": f"say {n}"}]} for n in range(work.cases)
    ]
    return json.dumps({"prompts": ["{{q}}"], "providers": ["file://echo.mjs"], "tests": tests})


_PEERS: dict[str, Callable[[Environment], Contender]] = {
    "pytest": _bare_pytest,
    "vitest-evals": _vitest_evals,
    "pydantic-evals": lambda environment: _python("pydantic-evals", environment, scripts.PYDANTIC_EVALS),
    "inspect-ai": lambda environment: _python("inspect-ai", environment, scripts.INSPECT, logs=("log",)),
    "deepeval": lambda environment: _python("deepeval", environment, scripts.DEEPEVAL, logs=(".deepeval",)),
    "promptfoo": _promptfoo,
}


def prepare(contender: Contender, work: Work, folder: Path) -> dict[str, str]:
    """Write what the contender reads into the folder, and return the variables that it is started with."""
    for name, text in contender.files(work).items():
        (folder / name).write_text(text, encoding="utf-8")
    if contender.name in NODE_PEERS:
        (folder / "node_modules").symlink_to(contender.environment.folder / "node_modules")
    return {**os.environ, **contender.variables}
