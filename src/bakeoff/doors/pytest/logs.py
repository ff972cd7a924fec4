"""Record an ordinary test as an eval: what it logs, and whether its asserts held.

The scores that a test logs are those of its eval. Its asserts decide whether it passes, so the threshold is 0: a test
that raises has failed and counts as 0, whatever it logged before. Without a score, a test that passes counts as 1.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from bakeoff._kernel.json import as_json
from bakeoff._kernel.text import escaped
from bakeoff.doors.pytest.failures import EvalFailed
from bakeoff.doors.pytest.gather import LOGGED, RUNNING, gathering
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.parallel import EMPTY_PLAN
from bakeoff.doors.pytest.rows import EvalRow
from bakeoff.doors.pytest.session import session_of
from bakeoff.doors.pytest.transcripts import transcript_of
from bakeoff.engine.trial import as_score
from bakeoff.errors import UsageError
from bakeoff.plan import Case, PassRule
from bakeoff.record import Failure, Phase, Record, Score, Transcript

_FOR_PYTEST = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)
_BY_THE_TEST = PassRule(threshold=0.0)
_LONGEST = 2000


@dataclass(slots=True)
class TestLog:
    """Hold the input, outputs and scores that one test has logged so far."""

    __test__ = False  # keep pytest from collecting it

    started: float = field(default_factory=time.time)
    row: dict[str, Any] = field(default_factory=dict)
    transcript: Transcript = field(default_factory=Transcript)
    scores: dict[str, Score] = field(default_factory=dict)


def log_input(input: Any, **row: Any) -> None:
    """Log the input of the test that runs, and what else belongs to its case, such as `expected`."""
    _log("log_input").row = {"input": input, **row}


def log_output(output: Any) -> None:
    """Log the output of the application: text, data, a `TaskResult`, or the result object of a known SDK."""
    _log("log_output").transcript = transcript_of(output)


def log_transcript(transcript: Transcript) -> None:
    """Log what the application did, where it is known already."""
    _log("run_eval").transcript = transcript


def log_score(name: str, value: float | bool | None, reason: str = "", **metadata: Any) -> None:
    """Log a score from 0 to 1 for the test that runs. A second score of the same name replaces the first.

    Args:
        name: the name of the score in every report.
        value: the score; None is unscored, and left out of the mean.
        reason: why, for those who read the report.
        metadata: anything else that is to be kept with the score.
    """
    log = _log("log_score")
    score = as_score(name, value)
    kept: Mapping[str, Any] = {key: as_json(each) for key, each in metadata.items()}
    log.scores[name] = score.model_copy(update={"reason": reason or score.reason, "metadata": kept})


def _log(function: str) -> TestLog:
    item = RUNNING[-1] if RUNNING else None
    if item is None:
        raise UsageError(f"{function}: no test is running: call it in a test or in code that a test calls")
    if hasattr(item, "group"):
        raise UsageError(f"{function}: {item.nodeid} is a case of a suite, whose scorers score what it returns")
    if (log := item.stash.get(LOGGED, None)) is None:
        log = item.stash[LOGGED] = TestLog()
    assert isinstance(log, TestLog)
    return log


def add_logged(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Add the eval of a test that has logged something, once the test has run."""
    log = item.stash[LOGGED]
    del item.stash[LOGGED]  # the test may be run again
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, _FOR_PYTEST) or (error is not None and item.get_closest_marker("xfail")):
        return
    gathered = gathering(item.config)
    others = gathered.has(item.nodeid)
    if others and not log.scores and (error is None or isinstance(error, EvalFailed)):
        return  # evals of the test have said everything
    gathered.add(item.nodeid, _outcome(item, log, call.duration, error, " log" if others else ""))


def _outcome(item: pytest.Item, log: TestLog, seconds: float, error: BaseException | None, suffix: str) -> EvalOutcome:
    row, session = EvalRow("", log.row), session_of(item.config)
    subject = session.subjects[""]
    case = Case(id=escaped(item.nodeid) + suffix, prompt=row.shown_input, expected=row.expected)
    trial = EMPTY_PLAN.trial_of(case, subject, 0, 0)
    failure = error and Failure(kind="subject", type=type(error).__name__, message=str(error)[:_LONGEST])
    scores = tuple(log.scores.values())
    if not failure and not any(score.value is not None for score in scores):
        scores += (Score(name="asserts", value=1.0, reason="the test passed"),)
    record = Record(
        **trial.identity,
        started=log.started,
        threshold=_BY_THE_TEST.threshold,
        attempt=Phase(seconds=seconds, failure=failure),
        transcript=log.transcript,
        scores=scores,
        spent=log.transcript.usage,
    )
    name = getattr(item, "originalname", None) or item.name
    return EvalOutcome(
        nodeid=item.nodeid,
        suite=name,
        case=str(log.row.get("name", name)),
        input=row.shown_input,
        expected=row.expected,
        rule=_BY_THE_TEST,
        subject=session.subject_to_tell(""),
    ).judged([record])
