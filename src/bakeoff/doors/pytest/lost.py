"""Keep the evals that were collected and have no result, with the reason: no gate may pass because they are missing.

A process that runs all items knows them at the end. Under xdist, only the workers collect, and a
crashed one cannot report, so the first worker immediately writes a list of the collected evals.
"""

import json
import time
import unittest
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.skipping import evaluate_skip_marks

from bakeoff.doors.pytest.gather import FOR_PYTEST, NotNeeded
from bakeoff.doors.pytest.groups import Group, by_group, subjects_of
from bakeoff.doors.pytest.options import name_of_test
from bakeoff.doors.pytest.parallel import EMPTY_PLAN
from bakeoff.doors.pytest.session import session_of
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import Failure, Phase, Record
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.ledger import NOT_RUN, SKIPPED, UNFINISHED

STOPPED = "it was not run: the session was stopped before"
_LEFT_OUT = "it was not run: it was collected, and then neither run nor deselected"
_CALLS_NO_TEST = ("setuponly", "setupplan", "collectonly")  # options
_MAX_LENGTH = 300


def lost_eval(
    outcome: EvalOutcome,
    why: str,
    subjects: Mapping[str, SubjectSpec],
    kind: str = NOT_RUN,
    *,
    case_id: str | None = None,
) -> EvalOutcome:
    """Return the outcome of an eval that has no result, from its outcome without records.

    Args:
        outcome: The eval as it was collected.
        why: The reason.
        subjects: The subjects of the session, by their parameters.
        kind: The type of the failure, by which the ledger counts it.
        case_id: The id of the case in the run, if it differs from the id of the test.
    """
    subject = subjects[outcome.parameters]
    case = Case(id=case_id or outcome.case_id, prompt=outcome.input, expected=outcome.expected)
    record = Record(
        **EMPTY_PLAN.trial_of(case, subject, 0, 0).identity,
        started=time.time(),
        tries=0,
        threshold=outcome.threshold,
        attempt=Phase(seconds=0.0, failure=Failure(kind="infra", type=kind, message=why, permanent=True)),
    )
    return outcome.judged([record], subject=subject)


def collected(item: Any) -> EvalOutcome:
    """Return an outcome without records for an eval: a case of a suite, or a test with an eval."""
    if isinstance(getattr(item, "group", None), Group):
        return item.unjudged()  # type: ignore[no-any-return]
    name = name_of_test(item)
    return EvalOutcome(nodeid=item.nodeid, suite=name, case=name, input="")


def write_collected(path: Path, items: Sequence[Any]) -> None:
    """Write these evals to a file for the reporting process."""
    subjects = {name: spec.model_dump(mode="json") for name, spec in subjects_of(by_group(items)).items()}
    lines = (collected(item).model_dump_json(exclude_defaults=True) for item in items)
    path.write_text("\n".join([json.dumps(subjects), *lines]), encoding="utf-8")


def read_collected(path: Path) -> tuple[list[EvalOutcome], dict[str, SubjectSpec]]:
    """Return the evals that a worker has collected, and the subjects by their parameters; empty if it wrote none."""
    if not path.exists() or not (text := path.read_text(encoding="utf-8")):
        return [], {}
    first, *lines = text.split("\n")
    subjects = {name: SubjectSpec.model_validate(spec) for name, spec in json.loads(first).items()}
    return [EvalOutcome.model_validate_json(line) for line in lines], subjects


def lost_in(item: pytest.Item, call: pytest.CallInfo[None]) -> EvalOutcome | None:
    """Return the outcome of an eval that an error or skip prevented, or that its test did not call.

    Return None for evals that were not planned: left out by marks or `skip_if`, or decided already.
    """
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, (NotNeeded, pytest.exit.Exception)) or getattr(getattr(item, "group", None), "skipped", None):
        return None
    not_run = any(mark.kwargs.get("run") is False for mark in item.iter_markers("xfail"))
    if call.when == "setup" and isinstance(error, pytest.xfail.Exception) and not_run:
        return None
    if isinstance(error, pytest.skip.Exception) and evaluate_skip_marks(item):
        return None
    one, subjects = collected(item), session_of(item.config).subjects
    if error is None:
        return lost_eval(one, "it was skipped: its test called no eval", subjects, SKIPPED)
    if isinstance(error, (*FOR_PYTEST, unittest.SkipTest)):
        return lost_eval(one, f"it was skipped: {error}"[:_MAX_LENGTH], subjects, SKIPPED)
    said = f"{type(error).__name__}: {error}"[:_MAX_LENGTH]
    where = "in a fixture" if call.when == "setup" else "in the test, before its eval"
    return lost_eval(one, f"it was not run: an error {where}: {said}", subjects)


def all_lost(
    config: pytest.Config,
    planned: Path | Sequence[Any],
    seen: Collection[str],
    crashed: Mapping[str, str],
    *,
    stopped: bool,
) -> Iterator[EvalOutcome]:
    """Yield the outcomes of the evals that were never reported.

    Args:
        config: The configuration of the session.
        planned: The evals that were collected and not deselected, or the file in which a worker of xdist wrote them.
        seen: The tests that were reported, by node id.
        crashed: The facts about tests whose worker crashed.
        stopped: The session ended early.
    """
    if any(config.getoption(name, False) for name in _CALLS_NO_TEST):
        return
    if isinstance(planned, Path):
        evals, subjects = read_collected(planned)
    else:
        evals, subjects = list(map(collected, planned)), subjects_of(by_group(planned))
    for one in evals:
        if one.nodeid not in seen:
            why = crashed.get(one.nodeid)
            yield lost_eval(one, why or (STOPPED if stopped else _LEFT_OUT), subjects, UNFINISHED if why else NOT_RUN)
