"""Every function that reads a file or a text from outside, with valid inputs to start from."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.json import json_object
from bakeoff._kernel.yaml import parse_yaml
from bakeoff.doors.agents.agents import read_agent
from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.doors.agents.results.read import parse_result as parse_exercise_result
from bakeoff.doors.components.results.read import parse_result as parse_component_result
from bakeoff.doors.components.suites import find_suites
from bakeoff.doors.eval.find import read_suite as read_eval
from bakeoff.doors.eval.plan import build_plan
from bakeoff.doors.eval.sources import rows_of_file
from bakeoff.doors.mcp.config import read_suite
from bakeoff.doors.mcp.servers import parse_headers
from bakeoff.doors.pytest.rows import read_rows
from bakeoff.grading.audit import read_audit
from bakeoff.grading.syntax import parse as parse_source
from bakeoff.grading.written_tests import find_tests
from bakeoff.logs.reader import FORMATS, Choices, ForeignLogReader
from bakeoff.mcp.client_files import read_client_file
from bakeoff.mcp.servers import parse_mcp_option
from bakeoff.mcp.snapshot import read_snapshot
from bakeoff.meter.wire_formats import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    EventSplitter,
    ModelAnswer,
    data_of,
    objects_of,
)
from bakeoff.models.in_process import read_script as read_model_script
from bakeoff.models.prices import parse_gateway_pricing
from bakeoff.models.providers import parse_model_name
from bakeoff.replay.http import HttpRecording
from bakeoff.replay.store import Key, Store
from bakeoff.report.readers import Source
from bakeoff.report.suites.eval_file import parse_eval_file
from bakeoff.scorers.judging import read_answer, read_choice
from bakeoff.scorers.mcp.calls import read_reply
from bakeoff.sdk_results import recognise
from bakeoff.storage.journal import read_journal, read_journal_backwards
from bakeoff.storage.labels import read_labels
from bakeoff.storage.run_folder import RunFolder
from bakeoff.subjects.controls import read_script
from bakeoff.toolchains.command_reports import read_junit
from bakeoff.toolchains.vitest import read_picture

_PROJECT = Path(__file__).resolve().parents[2]
_BUNDLED = _PROJECT / "src" / "bakeoff" / "bundled"
_DATA = _PROJECT / "tests"


@dataclass(frozen=True, slots=True)
class Parser:
    """Name a parser. `read` gets an input and an empty folder, and may raise a BakeoffError."""

    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[bytes, Path], object]
    accepts: tuple[type[Exception], ...] = ()  # what it raises on purpose besides


def parsers() -> tuple[Parser, ...]:
    """Return all parsers."""
    return (*_of_configurations(), *_of_records(), *_of_foreign_logs(), *_of_replies(), *_of_graders())


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes that first writes them to a file."""

    def reader(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        found = read(path)
        return list(found) if isinstance(found, Iterator) else found

    return reader


def _text(read: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    return lambda data, _: read(data.decode(errors="surrogateescape").encode(errors="replace").decode())


def _json(read: Callable[[Any], object]) -> Callable[[bytes, Path], object]:
    """Return a reader of JSON whose values are given to a function. What is no JSON never comes this far."""

    def reader(data: bytes, _: Path) -> object:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return read(value)

    return reader


def _samples(*patterns: str) -> tuple[bytes, ...]:
    found = [path.read_bytes() for pattern in patterns for path in sorted(_PROJECT.glob(pattern))]
    return tuple(data for data in found if len(data) < 60_000) or (b"{}",)


def _dumped(*values: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(value).encode() for value in values)


def _of_configurations() -> Iterator[Parser]:
    mcp = _samples("src/bakeoff/bundled/mcp/*/*.yaml")
    agents = _samples("src/bakeoff/doors/agents/shipped/*.yaml")
    client = _dumped(
        {"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"K": "${K}"}}, "b": {"url": "http://h/mcp"}}}
    )
    yield Parser("YAML with lines", (*mcp, *agents), _text(lambda text: parse_yaml(text, Path("x.yaml"))))
    yield Parser("MCP suite", mcp, _file("mcp-testing-framework.yaml", lambda path: read_suite(path, {"K": "v"})))
    yield Parser("agent", agents, _file("agent.yaml", read_agent))
    yield Parser("mcp.json", client, _file("mcp.json", lambda path: read_client_file(path, {"K": "v"})))
    yield Parser("suite.toml", _samples("src/bakeoff/bundled/components/*/suite.toml"), _suite)
    yield Parser(
        "exercise",
        _samples("src/bakeoff/bundled/exercises/python/exercises/practice/plant-rota/.meta/config.json"),
        _exercise,
    )
    yield Parser("track", _samples("src/bakeoff/bundled/exercises/*/config.json"), _track)
    yield Parser(
        ".env", (b"A=b\nexport C='d e'\nF=\"${A}\"\n",), _file(".env", lambda path: read_environment(path.parent, {}))
    )
    yield Parser("snapshot", _samples("scripts/hostile/seeds/snapshot.json"), _file("x.snapshot.json", read_snapshot))
    yield Parser("headers", (b"A: b", b"Authorization: Bearer x"), _text(lambda text: parse_headers([text])))
    yield Parser("--mcp", (b"stdio:npx -y p", b"http:https://h/mcp", b"none"), _text(parse_mcp_option))
    yield Parser("model names", (b"openai:gpt-4o", b"local:smollm2", b"a/b:c"), _text(parse_model_name))
    evals = _samples("src/bakeoff/bundled/eval/*.yaml", "scripts/hostile/seeds/bakeoff.yaml")
    yield Parser("bakeoff.yaml", evals, _file("bakeoff.yaml", lambda path: build_plan(read_eval(path))))
    foreign = _samples("scripts/hostile/seeds/promptfooconfig.yaml")
    yield Parser("promptfoo", foreign, _file("promptfooconfig.yaml", lambda path: build_plan(read_eval(path))))
    table = b'[tool.bakeoff]\nsubjects = ["oracle"]\nscorers = ["exact"]\n'
    table += b'[[tool.bakeoff.cases]]\ninput = "a"\nexpected = "b"\n'
    yield Parser("pyproject.toml", (table,), _file("pyproject.toml", lambda path: build_plan(read_eval(path))))
    rows = (b'{"a": 1}\n{"a": 2}\n', b"a,b\n1,2\n", b'[{"a": 1}]')
    for name in ("cases.jsonl", "cases.csv", "cases.json", "cases.yaml", "cases.parquet"):
        yield Parser(f"cases of bakeoff.yaml, {name}", rows, _file(name, rows_of_file))
    for name in ("rows.jsonl", "rows.csv", "rows.json", "rows.yaml"):
        yield Parser(f"data of evals, {name}", rows, _file(name, lambda path: read_rows(str(path), path.parent)))


def _suite(data: bytes, folder: Path) -> object:
    copy = folder / "suites" / "one"
    if not copy.exists():
        shutil.copytree(_BUNDLED / "components" / "python-intervals", copy)
    (copy / "suite.toml").write_bytes(data)
    return find_suites(folder / "suites")


def _exercise(data: bytes, folder: Path) -> object:
    copy = folder / "track"
    if not copy.exists():
        name = Path("exercises/practice/plant-rota")
        shutil.copytree(_BUNDLED / "exercises" / "python" / name, copy / name)
        shutil.copy(_BUNDLED / "exercises" / "python" / "config.json", copy)
    (copy / "exercises/practice/plant-rota/.meta/config.json").write_bytes(data)
    return find_exercises(copy)


def _track(data: bytes, folder: Path) -> object:
    copy = folder / "whole"
    if not copy.exists():
        shutil.copytree(_BUNDLED / "exercises" / "python" / "exercises", copy / "exercises")
    (copy / "config.json").write_bytes(data)
    return find_exercises(copy)


_LOGS = {
    "inspect": "*.eval",
    "inspect-json": "inspect.json",
    "harbor": "harbor-job/hello*/result.json",
    "atif": "atif.json",
    "promptfoo": "promptfoo.json",
    "promptfoo-lines": "promptfoo.jsonl",
    "deepeval": "deepeval.json",
    "pydantic-evals": "pydantic-evals.json",
    "vitest-evals": "vitest-evals/a.json",
    "lm-eval": "lm-eval/*/samples*.jsonl",
    "swebench": "acme*.json",
}


def _of_foreign_logs() -> Iterator[Parser]:
    for name in FORMATS:
        seeds = _samples(f"tests/logs/logs/{_LOGS[name]}")
        yield Parser(f"logs, {name}", seeds, partial(_foreign_log, name))


def _foreign_log(format_: str, data: bytes, folder: Path) -> object:
    path = folder / ("result.json" if format_ == "harbor" else "log")
    path.write_bytes(data)
    reader = ForeignLogReader(Choices(format=format_))
    return list(Source(folder if format_ == "harbor" else path, reader).records())


def _of_records() -> Iterator[Parser]:
    journal, plan = (
        _samples("tests/storage/data/*.jsonl"),
        _samples("tests/doors/mcp/plan_with_configuration.json"),
    )
    yield Parser("journal", journal, _file("journal.jsonl", read_journal))
    yield Parser("journal, backwards", journal, _file("journal.jsonl", read_journal_backwards))
    yield Parser("plan.json", plan, _file("plan.json", lambda path: RunFolder(path.parent).read_plan()))
    texts = dict.fromkeys(("labeller", "scorer", "case", "subject", "attempt_key", "answer", "stratum", "note"), "x")
    label = {"v": 1, "time": 1.0, "round": 1, "judged": 1.0, "size": 1, "label": "pass", **texts}
    yield Parser("labels", (json.dumps(label).encode() + b"\n",), _file("labels.jsonl", read_labels))
    asked = {"asked": {"method": "GET", "url": "http://h"}, "answer": {"status": 200, "headers": {}, "body": "x"}}
    yield Parser("recording", _dumped(asked), _recording)
    results = _samples("tests/doors/components/data/*.json")
    yield Parser("component results", results, lambda data, _: parse_component_result(data, "x.json"))
    yield Parser(
        "exercise results",
        _samples("scripts/hostile/seeds/exercise-result.json"),
        lambda data, _: parse_exercise_result(data, "x.json"),
    )
    yield Parser(
        "eval results",
        _samples("scripts/hostile/seeds/eval-result.json"),
        lambda data, _: parse_eval_file(data, "x.json"),
    )
    yield Parser("audit", _samples("scripts/hostile/seeds/audit.json"), _file("audit.json", read_audit))
    replies = {
        "replies": [{"to": "x", "say": "y", "call": [{"name": "n", "arguments": {"a": 1}}], "usage": {"input": 1}}]
    }
    yield Parser("model script", _dumped(replies), _file("script.json", lambda path: read_model_script(str(path))))
    yield Parser(
        "subject script",
        _dumped({"answers": {"c": [{"output": "x"}]}}),
        _file("s.json", lambda path: read_script(path, "x")),
    )


def _recording(data: bytes, folder: Path) -> object:
    path = folder / "http" / "ab" / f"{'ab' * 32}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Store("strict", folder).find(Key("http", {"url": "http://h"}, "ab" * 32), HttpRecording)


def _of_replies() -> Iterator[Parser]:
    call = '{"serverName": "a", "toolName": "b", "parameters": {"c": 1}}'
    yield Parser(
        "reply with calls",
        (call.encode(), f"```json\n{call}\n```".encode(), f"I say [{call}]".encode()),
        _text(read_reply),
    )
    schema = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
    yield Parser(
        "judge's answer",
        (b'{"score": 0.5, "reason": "x"}',),
        _text(lambda text: read_answer(text, schema)),
        (ValueError,),
    )
    yield Parser(
        "judge's choice",
        (b'{"choice": "B", "reason": "x"}', b"B"),
        _text(lambda text: read_choice(text, "ABC")),
        (ValueError,),
    )
    price = {"prompt": "0.000001", "completion": "0.000002", "input_tiers": [{"cost": "0.1", "min": 0, "max": 200000}]}
    yield Parser("prices", _dumped(price), _json(lambda raw: parse_gateway_pricing("m", raw)))
    chat = {"model": "m", "choices": [{"index": 0, "delta": {"content": "x", "tool_calls": [{"index": 0, "id": "i", "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.1}}  # fmt: skip  # noqa: E501
    messages = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}, "content": [{"type": "tool_use", "id": "i", "name": "n", "input": {}}], "index": 0, "delta": {"type": "text_delta", "text": "x"}}  # fmt: skip  # noqa: E501
    responses = {"type": "response.completed", "response": {"model": "m", "output": [{"type": "function_call", "name": "f", "arguments": "{}"}], "usage": {"input_tokens": 1, "output_tokens": 2}}}  # fmt: skip  # noqa: E501
    gemini = {"candidates": [{"content": {"parts": [{"text": "x"}, {"functionCall": {"name": "f", "args": {}}}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1}}  # fmt: skip  # noqa: E501
    every = _dumped(chat, messages, responses, gemini)
    yield Parser("wire formats", every, _json(_wire))
    yield Parser(
        "event stream", tuple(b"event: x\r\ndata: " + data + b"\n\ndata: [DONE]\n\n" for data in every), _stream
    )
    yield Parser("results of SDKs", every, _json(recognise))


def _wire(value: Any) -> None:
    if isinstance(value, dict):
        for wire in (CHAT, MESSAGES, RESPONSES, GEMINI):
            wire.event(ModelAnswer(), value)
            wire.whole(ModelAnswer(), value)
            list(wire.tools(value))
            list(wire.results(value))


def _stream(data: bytes, _: Path) -> None:
    splitter = EventSplitter(1 << 20)
    for start in range(0, len(data), 37):
        for event in splitter.feed(data[start : start + 37]):
            data_of(event)
    objects_of(data)


def _of_graders() -> Iterator[Parser]:
    junit = b'<testsuites><testsuite name="s"><testcase classname="c" name="n" time="0.1"><failure message="m">x</failure></testcase></testsuite></testsuites>'  # fmt: skip  # noqa: E501
    yield Parser("JUnit", (junit,), _text(read_junit), (ValueError,))
    yield Parser("report of a command", (b'x\n{"testResults": []}\n',), _text(json_object), (ValueError,))
    yield Parser("picture", (b"\x89PNG\r\n\x1a\n", b'{"png": "aGVsbG8="}\n'), lambda data, _: read_picture(data))
    tracks = "src/bakeoff/bundled/exercises/*/exercises/practice/*"
    sources = {"py": _samples(f"{tracks}/*_test.py")[:3], "ts": _samples(f"{tracks}/*.test.ts")[:3]}
    for ending, texts in sources.items():
        yield Parser(f"tests in {ending}", texts, _text(lambda text, ending=ending: find_tests(f"x_test.{ending}", text)), (SyntaxError,))  # type: ignore[misc]  # fmt: skip  # noqa: E501
        yield Parser(f"source in {ending}", texts, _text(lambda text, ending=ending: parse_source(f"x.{ending}", text)), (SyntaxError,))  # type: ignore[misc]  # fmt: skip  # noqa: E501


def parse_command_line(words: list[str]) -> None:
    """Parse an argument vector as `bakeoff` does, without carrying the command out."""
    import typer

    from bakeoff.cli.main import app

    command: Any = typer.main.get_command(app)
    context = command.make_context("bakeoff", list(words))
    while hasattr(command, "resolve_command") and (left := [*context._protected_args, *context.args]):
        name, command, left = command.resolve_command(context, left)
        context = command.make_context(name, left, parent=context)
        command = context.command  # that of the table only stands for it


def command_lines() -> tuple[bytes, ...]:
    """Return valid argument vectors, with their words on lines."""
    lines = (
        *(
            "run --model oracle --rounds 2",
            "agents run --agent nop --jobs 3",
            "mcp evaluate x.yaml --case a",
            "runs list",
        ),
        *("compare a b --json", "export a --format inspect", "power --cases 10", "resume latest --jobs 2"),
    )
    return tuple(os.linesep.join(line.split()).encode() for line in lines)
