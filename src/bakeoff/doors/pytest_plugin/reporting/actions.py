"""What GitHub Actions shows of evals: annotations where their tests stand, and the summary of the step."""

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.blocks import page_blocks
from bakeoff.doors.pytest_plugin.reporting.numbers import file_part, why_not
from bakeoff.doors.pytest_plugin.reporting.shape import Summary

Places = Mapping[str, tuple[Path, int | None]]
"""File and line, counted from 0, of tests by their node ids."""

_WORKSPACE = "GITHUB_WORKSPACE"


def in_actions(environment: Mapping[str, str]) -> bool:
    return environment.get("GITHUB_ACTIONS") == "true"


def annotations(
    missed: Sequence[EvalOutcome],
    unjudged: Sequence[EvalOutcome],
    places: Places,
    environment: Mapping[str, str],
    *,
    all_of_them: int,
) -> Iterator[str]:
    """An error for each eval that missed its threshold, a warning for each that could not be judged."""
    from bakeoff.report.github import MOST_ANNOTATIONS, command

    told = 0
    for level, outcomes in (("error", missed), ("warning", unjudged)):
        for outcome in outcomes[:MOST_ANNOTATIONS]:
            told += 1
            path, line = places.get(outcome.nodeid, (Path(file_part(outcome.nodeid)), None))
            score = "no score" if outcome.score is None else f"score {outcome.score:.2f}"
            wanted = "" if outcome.threshold is None else f", threshold {outcome.threshold:g}"
            text = f"{score}{wanted}: {why_not(outcome)}"
            file = _in_repository(path, environment)
            yield command(level, outcome.nodeid, text, file=file, line=None if line is None else line + 1)
    if all_of_them > told:
        yield command("notice", "bakeoff", f"{all_of_them - told} more evals did not pass; the summary counts them")


def _in_repository(path: Path, environment: Mapping[str, str]) -> str:
    """As GitHub knows it: from the repository's own folder, wherever in it pytest was started."""
    start = environment.get(_WORKSPACE) or Path.cwd()
    return str(path.relative_to(start)) if path.is_relative_to(start) else str(path)


def write_summary(summary: Summary, missed: list[EvalOutcome], environment: Mapping[str, str]) -> None:
    """To the page of the step, where GitHub has one."""
    from bakeoff.report.github import SUMMARY_FILE, write_step_summary

    if environment.get(SUMMARY_FILE):
        write_step_summary(list(page_blocks(summary, missed)), io.StringIO(), environment)
