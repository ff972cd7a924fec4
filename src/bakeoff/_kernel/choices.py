"""Choices that options, commands, configuration and the pytest plugin share. All of them load this light module."""

from typing import Literal, TypeAlias, get_args

ReplayMode: TypeAlias = Literal["off", "auto", "record", "strict"]
"""`auto` replays and records what is missing, `record` records everything again, `strict` only replays."""

REPLAY_MODES: tuple[ReplayMode, ...] = get_args(ReplayMode)

SandboxName: TypeAlias = Literal["auto", "process", "bwrap", "docker"]
"""`auto` is the strongest sandbox that works on this machine."""

ExecutorName: TypeAlias = Literal["local", "ray"]
"""`local` runs trials in this process, `ray` on the nodes of a Ray cluster."""

EXECUTORS: tuple[ExecutorName, ...] = get_args(ExecutorName)

ComparisonGate: TypeAlias = Literal["verdict", "regression"]
"""A gate is decided once this is ruled out: `verdict` any difference beyond the margin, `regression` only a loss."""

UndecidableRule: TypeAlias = Literal["pass", "fail"]
"""The result of a gate where neither a regression nor its absence is shown."""

UNDECIDABLE_RULES: tuple[UndecidableRule, ...] = get_args(UndecidableRule)

ExportFormat: TypeAlias = Literal["csv", "parquet", "inspect", "junit", "github", "markdown", "badge"]
"""The formats of `bakeoff export`."""
