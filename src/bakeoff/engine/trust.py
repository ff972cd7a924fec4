"""List everything that a plan runs or contacts, so that the user can decide whether to trust it."""

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import chain

from pydantic import JsonValue

from bakeoff._kernel.text import count_of
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec

# These kinds run and contact nothing outside this process, unless an option names a function.
_HARMLESS = frozenset(
    {"nop", "oracle", "cheat", "scripted"}
    | {"checks", "contains", "cost", "exact", "json", "latency", "regex", "spans", "structured", "tool_calls"}
    | {"trajectory"}
)
_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
_VARIABLE = re.compile(r"\$\{(\w+)")
_SERVER = re.compile(r"(?:stdio|https?|sse):", re.IGNORECASE)
_NAMES = {
    "target": "function",
    "function": "function",
    "base_url": "address",
    "url": "address",
    "key_variable": "your variable",
    "model": "model",
}
_DATA = {
    "scripted": ("answers", "default", "file"),
    **dict.fromkeys(("code", "http"), ("code", "variables")),
    **dict.fromkeys(("javascript", "python"), ("code",)),
}
"""Options that may look like commands, or that are named in another way."""
_SHOWN_ELSEWHERE = ("command", "argv", "args", "install")  # as one command; `install` is a hint and never run


def what_runs(plan: Plan) -> list[str]:
    """Return the commands, functions, addresses, models and secrets that a run would use."""
    specs: list[SubjectSpec | ScorerSpec] = [*plan.subjects, *plan.every_scorer]
    return list(dict.fromkeys(chain(*map(_of_spec, specs), _named(plan.settings), _of_cases(plan.cases))))


def _of_spec(spec: SubjectSpec | ScorerSpec) -> Iterator[str]:
    quiet = spec.kind in _HARMLESS
    # Data may look like commands, and code names its own.
    answers = _DATA.get(spec.kind, ())
    for line in _named({name: value for name, value in spec.options.items() if name not in answers}, anywhere=True):
        quiet = True
        yield line
    steps = [step for step in spec.transform if isinstance(step, dict)]
    if (code := spec.options.get("code")) is not None:
        language = "javascript" if spec.kind == "http" else spec.options.get("language", spec.kind)
        steps.append({str(language): str(code)})
    for named, text in (found for step in steps for found in step.items()):
        quiet = True
        yield f"code in {named}: {text}"
    if spec.kind == "scripted" and isinstance(file := spec.options.get("file"), str):
        yield f"your file: {file}"
    if not quiet:
        what = "subject" if isinstance(spec, SubjectSpec) else "scorer"
        yield f"{what} {spec.name or spec.kind!r} of the kind {spec.kind!r}"


def _of_cases(cases: tuple[Case, ...]) -> Iterator[str]:
    tested = [case.grading for case in cases if case.grading is not None]
    if tested:
        yield f"the tests of {count_of(len(tested), 'case')}, in the sandbox"
    for grading in tested:
        if grading.command:
            yield f"command: {shlex.join(grading.command)}"
    for case in cases:
        yield from _named(case.expected)


def _named(value: JsonValue | Mapping[str, JsonValue], *, anywhere: bool = False) -> Iterator[str]:
    """Yield the commands, functions and files in options. With `anywhere`, check every text."""
    if isinstance(value, Mapping):
        yield from _command_in(value)
        for name, inner in value.items():
            if name in _NAMES and isinstance(inner, str):
                yield f"{_NAMES[name]}: {inner}"
            elif name == "login" and isinstance(inner, list):
                yield from (f"your file: ~/{path}" for path in inner)
            elif name not in _SHOWN_ELSEWHERE:
                yield from _named(inner, anywhere=anywhere)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner, anywhere=anywhere)
    elif isinstance(value, str):
        yield from _named_in_text(value, anywhere=anywhere)


def _named_in_text(text: str, *, anywhere: bool) -> Iterator[str]:
    yield from (f"your variable: {name}" for name in _VARIABLE.findall(text))
    if anywhere and _SERVER.match(text):
        yield f"server: {text}"
    elif anywhere and _FUNCTION.fullmatch(text):
        yield f"function: {text}"


def _command_in(options: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield the command in options, together with its variables."""
    command = options.get("command") or options.get("argv")
    if not command or not isinstance(command, str | list):
        return
    args, env = options.get("args"), options.get("env")
    words = [command] if isinstance(command, str) else command
    words = [*words, *(args if isinstance(args, list) else ())]
    given = [f"{name}={value}" for name, value in env.items()] if isinstance(env, dict) else []
    confined = ", as you, without a sandbox" if options.get("sandbox") == "none" else ""
    yield f"command{confined}: {' '.join([*given, shlex.join(map(str, words))])}"
    for word in map(str, words):
        yield from _named_in_text(word, anywhere=False)
