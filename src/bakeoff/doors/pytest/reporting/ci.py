"""Evals in continuous integration: JUnit properties, GitHub annotations and the summary of a GitHub step."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bakeoff._kernel.text import visible
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.reporting.blocks import step_blocks
from bakeoff.doors.pytest.reporting.numbers import file_part, why_not
from bakeoff.doors.pytest.reporting.session_summary import SessionSummary

Places = Mapping[str, tuple[Path, int | None]]
"""File and line, counted from 0, of tests by their node ids."""

_MAX_NAME_LENGTH = 100
_LONGEST = 500
_MAX_ROUNDS = 20  # of a case that have properties of their own


def annotations(
    summary: SessionSummary,
    redact: Callable[[EvalOutcome], EvalOutcome],
    places: Places,
    environment: Mapping[str, str],
) -> Iterator[str]:
    """Yield an error for each eval that missed its threshold, and a warning for each that could not be judged.

    A notice counts those that have no annotation.
    """
    from bakeoff.report.exports.github import MAX_ANNOTATIONS, command

    left_out = summary.numbers.failed + summary.numbers.undecided
    for level, outcomes in (("error", summary.tallies.missed), ("warning", summary.tallies.unjudged)):
        for outcome in map(redact, outcomes[:MAX_ANNOTATIONS]):
            left_out -= 1
            path, line = places.get(outcome.nodeid, (Path(file_part(outcome.nodeid)), None))
            score = "no score" if outcome.score is None else f"score {outcome.score:.2f}"
            wanted = "" if outcome.threshold is None else f", threshold {outcome.threshold:g}"
            text = f"{score}{wanted}: {why_not(outcome)}"
            start = environment.get("GITHUB_WORKSPACE") or Path.cwd()  # GitHub's paths are relative to the repository
            file = str(path.relative_to(start) if path.is_relative_to(start) else path)
            yield command(level, outcome.nodeid, text, file=file, line=None if line is None else line + 1)
    if left_out > 0:
        yield command("notice", "bakeoff", f"{left_out} more evals did not pass; the summary counts them")


def write_summary(summary: SessionSummary, missed: list[EvalOutcome], environment: Mapping[str, str]) -> str:
    """Write the summary to the page of the step, if GitHub named a file for it; there is no note to print."""
    from bakeoff.report.exports.github import SUMMARY_FILE, write_step_summary

    if environment.get(SUMMARY_FILE):
        write_step_summary(list(step_blocks(summary, missed)), io.StringIO(), environment)
    return ""


def properties_of(outcomes: Sequence[EvalOutcome]) -> list[tuple[str, object]]:
    """Return the properties of a test for the file of `--junitxml`; their names begin with `eval.`.

    The evals of a test with several are numbered from the second on. All values are texts, so that they can be sent
    between processes.
    """
    found: list[tuple[str, object]] = []
    for number, outcome in enumerate(outcomes):
        prefix = f"eval.{number + 1}." if number else "eval."
        found += [(prefix + name, value) for name, value in _properties(outcome)]
    return found


def _properties(outcome: EvalOutcome) -> Iterator[tuple[str, str]]:
    yield "suite", visible(outcome.suite, _MAX_NAME_LENGTH)
    yield "case", visible(outcome.case, _MAX_NAME_LENGTH)
    yield "score", _number(outcome.score)
    if outcome.threshold is not None:
        yield "threshold", f"{outcome.threshold:g}"
    if outcome.problem:
        yield "problem", visible(outcome.problem, _LONGEST)
    for number, record in enumerate(outcome.records[:_MAX_ROUNDS]):
        prefix = f"round.{number + 1}." if len(outcome.records) > 1 else ""
        for score in record.scores:
            name = f"{prefix}scorer.{visible(score.name, _MAX_NAME_LENGTH)}"
            yield name, "error" if score.failure else _number(score.value)
            if reason := score.failure.message if score.failure else score.reason:
                yield f"{name}.reason", visible(reason, _LONGEST)
    for prefix, usage in (("", outcome.used), ("judging.", outcome.judging)):
        if usage.tokens:
            yield f"{prefix}tokens", str(usage.tokens)
        if usage.cost is not None:
            yield f"{prefix}cost", f"{usage.cost:.6f}"


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:g}"
