"""Scores as properties in the file of `--junitxml`. Their names begin with `eval.`; a test's own stay as they are."""

from collections.abc import Iterator, Sequence

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.report.words import visible

_LONGEST_NAME = 100
_LONGEST = 500
_MOST_ROUNDS = 20  # of a case that are told one by one


def properties_of(outcomes: Sequence[EvalOutcome]) -> list[tuple[str, object]]:
    """All texts, so that they can travel. The evals of a test that has several are numbered from the second on."""
    found: list[tuple[str, object]] = []
    for number, outcome in enumerate(outcomes):
        prefix = f"eval.{number + 1}." if number else "eval."
        found += [(prefix + name, value) for name, value in _facts(outcome)]
    return found


def _facts(outcome: EvalOutcome) -> Iterator[tuple[str, str]]:
    yield "suite", visible(outcome.suite, _LONGEST_NAME)
    yield "case", visible(outcome.case, _LONGEST_NAME)
    yield "score", _number(outcome.score)
    if outcome.threshold is not None:
        yield "threshold", f"{outcome.threshold:g}"
    if outcome.problem:
        yield "problem", visible(outcome.problem, _LONGEST)
    for number, record in enumerate(outcome.records[:_MOST_ROUNDS]):
        prefix = f"round.{number + 1}." if len(outcome.records) > 1 else ""
        for score in record.scores:
            name = f"{prefix}scorer.{visible(score.name, _LONGEST_NAME)}"
            yield name, "error" if score.failure else _number(score.value)
            if reason := score.failure.message if score.failure else score.reason:
                yield f"{name}.reason", visible(reason, _LONGEST)
    spent, judging = outcome.used, outcome.judging
    if spent.tokens:
        yield "tokens", str(spent.tokens)
    if spent.cost is not None:
        yield "cost", f"{spent.cost:.6f}"
    if judging.tokens:
        yield "judging.tokens", str(judging.tokens)
    if judging.cost is not None:
        yield "judging.cost", f"{judging.cost:.6f}"


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:g}"
