"""Run folders that someone made to hurt whoever reads them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec

SCRIPT = "<script>alert(1)</script>"
BREAKOUTS = {
    "script": SCRIPT,
    "attribute": '" onmouseover="alert(1)" x=\'',
    "end-of-page": "</pre></table></main></body></html><img src=x onerror=alert(1)>",
    "cdata": "]]></failure></testcase><testcase name='forged'/>",
    "escapes": "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5m\x00\x08",
    "direction": "\u202egnp.exe\u2066\u200e",
    "markdown": "`` | x |\n\n# owned\n[a](javascript:alert(1)) @everyone https://evil.example",
    "formula": '=HYPERLINK("https://evil.example","x")',
    "workflow": "\n::set-env name=PATH::/evil\n##[command]x",
    "rich": "[link=https://evil.example]x[/link][/]",
    "json": '"}],"x":[{"',
    "wide": "\U0001f4a9\u0301" * 5000,
}
"""A text for every field that takes one."""

LONG = "A" * (10 * 1024 * 1024)
LONG_FIELDS: dict[int, dict[str, Any]] = {
    1: {"transcript": {"output": LONG}},
    3: {"scores": [{"name": "exact", "value": 0.0, "reason": LONG}]},
}

NAME = "<script>alert(1)</script>|`=cmd()`@x,::y"  # all of it printable, so a plan takes it


def hostile_plan(name: str = NAME) -> Plan:
    return Plan(
        name=name,
        cases=(Case(id=name, prompt=name, tags={name: name}), Case(id="second", prompt="?", expected=name)),
        subjects=(
            SubjectSpec(kind="scripted", name=name, options={"model": name, "system": name}),
            SubjectSpec(kind="scripted", name="other"),
        ),
        scorers=(ScorerSpec(kind="exact", name=name),),
        rounds=2,
    )


def raw_record(plan: Plan, index: int, text: str, **more: Any) -> dict[str, Any]:
    """A record with that text in every field that a subject, a scorer or a provider fills."""
    trial = plan.trial(index)
    failed = index % 4 == 2
    failure = {"kind": "infra", "type": text, "message": text, "detail": text}
    usual = {
        "case": trial.case.id,
        "subject": trial.subject.name,
        "round": trial.round,
        "attempt_key": trial.attempt_key,
        "score_key": trial.score_key,
        "started": 1.7e9,
        "threshold": 1.0,
        "attempt": {"seconds": 1.0, **({"failure": failure} if failed else {})},
        "transcript": {
            "output": text if index % 2 else {text[:1000]: [text]},
            "steps": [
                {
                    "parts": [
                        {"type": "text", "text": text},
                        {"type": "reasoning", "text": text},
                        {"type": "tool", "name": text, "arguments": {"x": text}, "result": text, "id": text[:50]},
                        {"type": "tool", "name": text, "arguments": text, "error": text},
                    ],
                    "finish_reason": text,
                }
            ],
            "metadata": {"price": {"date": text, "source": text}, "mcp_tools_hash": text, "agent_version": text},
        },
        "artefacts": {text[:200]: text},
        "refused": {text[:200]: text},
        "workspace": text,
        "scores": [{"name": text[:200], "value": float(index % 2), "reason": text, "metadata": {"x": text}}],
        "spent": {"requests": 1, "input": 10, "output": 5, "cost": 0.5},
    }
    return {**usual, **more}


def line(record: dict[str, Any] | str) -> bytes:
    body = record if isinstance(record, str) else json.dumps(record)
    return f'{{"type":"record","v":1,"record":{body}}}\n'.encode()


def texts(text: str) -> Callable[[Plan], bytes]:
    return lambda plan: b"".join(line(raw_record(plan, index, text)) for index in range(plan.size))


def _one(**changes: Any) -> Callable[[Plan], bytes]:
    """Four good records and four with something wrong."""
    return lambda plan: b"".join(
        line(raw_record(plan, index, "fine", **(changes if index % 2 else {}))) for index in range(plan.size)
    )


def _nested(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return {"output": value}


def _raw(extra: bytes) -> Callable[[Plan], bytes]:
    return lambda plan: texts("fine")(plan) + extra


JOURNALS: dict[str, Callable[[Plan], bytes]] = {
    **{f"text-{name}": texts(text) for name, text in BREAKOUTS.items()},
    "long-texts": lambda plan: b"".join(
        line(raw_record(plan, index, "fine", **LONG_FIELDS.get(index, {}))) for index in range(plan.size)
    ),
    "nan": lambda plan: _one()(plan) + line(json.dumps(raw_record(plan, 0, "x", started=float("nan")))),
    "infinite-cost": lambda plan: _one()(plan) + line('{"spent":{"cost":1e999}}'),
    "huge-time": _one(started=1e300, attempt={"seconds": 1e300}),
    "negative": _one(started=-1e18, attempt={"seconds": -5.0}, spent={"input": -(10**30), "cost": -3.0}),
    "score-out-of-range": _one(scores=[{"name": "exact", "value": 7.5}]),
    "nested-100": _one(transcript=_nested(100)),
    "nested-deep": lambda plan: _one()(plan) + line('{"transcript":{"output":' + "[" * 100_000 + "]" * 100_000 + "}}"),
    "wrong-types": _one(case=[1], subject={"a": 1}, round="first", scores="none", transcript=7),
    "unknown-fields": _one(__proto__={"x": 1}, verdict="pass"),
    "foreign-cases": _one(case="../../etc/passwd", subject="../x", round=10**15),
    "truncated": lambda plan: texts("fine")(plan)[:-400],
    "torn-in-the-first-line": lambda plan: texts("fine")(plan)[:300],
    "not-json": _raw(b'\x00\xff\xfe garbage\n[]\nnull\n3\n"x"\n{}\n'),
    "newer": _raw(b'{"type":"record","v":999,"record":{}}\n'),
    "strange-start": _raw(b'{"type":"start","v":1,"sandbox":{"<script>":["\\u001b[31m"]},"bakeoff":["<script>"]}\n'),
    "blobs-outside": _raw(b'{"type":"record","v":1,"blobs":[[["case"],"../../../etc/passwd"]],"record":{"case":""}}\n'),
    "infinite-version": _raw(b'{"type":"start","v":Infinity}\n'),
    "surrogates": _raw(line('{"case":"\\ud800"}')),
    "empty": lambda plan: b"",
}


def write_hostile(folder: Path, journal: Callable[[Plan], bytes], plan: Plan | None = None) -> Path:
    plan = plan or hostile_plan()
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(plan.model_dump_json())
    (folder / "journal.jsonl").write_bytes(journal(plan))
    return folder
