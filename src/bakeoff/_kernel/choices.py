"""Choices that options, commands, configuration and the pytest plugin share. Loads fast."""

from typing import Literal, TypeAlias, get_args

RESULTS = "results"
"""The folder of results, unless another is named. The runs of all doors are in its folder `runs`."""

ReplayMode: TypeAlias = Literal["off", "auto", "record", "strict"]
"""`auto` replays and records what is missing, `record` records everything again, `strict` only replays."""

REPLAY_MODES: tuple[ReplayMode, ...] = get_args(ReplayMode)

SandboxName: TypeAlias = Literal["auto", "process", "bwrap", "docker"]
"""`auto` is the strongest sandbox that works on this machine."""

ExecutorName: TypeAlias = Literal["local", "ray"]
"""`local` runs trials in this process, `ray` on the nodes of a Ray cluster."""

EXECUTORS: tuple[ExecutorName, ...] = get_args(ExecutorName)

ComparisonGate: TypeAlias = Literal["verdict", "regression", "no-new-failures"]
"""`verdict` fails on a regression, and is decided once any difference beyond the margin is ruled out; `regression`
needs only a loss ruled out; `no-new-failures` fails if a case that passed in every round fails in every round now."""

UndecidableRule: TypeAlias = Literal["pass", "fail"]
"""The result of a gate that can show neither a regression nor its absence."""

UNDECIDABLE_RULES: tuple[UndecidableRule, ...] = get_args(UndecidableRule)

ExportFormat: TypeAlias = Literal["csv", "parquet", "inspect", "junit", "github", "markdown", "badge"]
"""The formats of `bakeoff export`."""

StarterKind: TypeAlias = Literal["eval", "components", "agents", "mcp", "pytest"]
"""The kinds of starts that `bakeoff init` writes."""

LogFormat: TypeAlias = Literal[
    "inspect",
    "inspect-json",
    "harbor",
    "atif",
    "promptfoo",
    "promptfoo-lines",
    "deepeval",
    "pydantic-evals",
    "vitest-evals",
    "lm-eval",
    "swebench",
]
"""The formats of `bakeoff import`."""


def shard_in(text: str) -> tuple[int, int]:
    """Read `2/4` as shard 2 of 4, and return both numbers. Raise ValueError for other texts."""
    number, _, of = text.partition("/")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in (number, of)):
        raise ValueError(text)
    if not 1 <= int(number) <= int(of):
        raise ValueError(text)
    return int(number), int(of)


SHARD_FORM = "write the number of the shard and how many there are, such as 1/4 or 4/4"
