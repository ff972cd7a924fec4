"""Keep the evals that were collected and did not run, with the reason: no gate may pass because they are missing.

A process that runs all items knows them at the end. Under xdist only the workers collect, and one that crashes tells
nothing any more, so that the first of them writes down at once what it has collected.
"""

import json
import time
import unittest
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import escaped
from bakeoff.doors.pytest.gather import LOGGED
from bakeoff.doors.pytest.groups import KEPT_GROUPS, Group, subjects_of
from bakeoff.doors.pytest.options import FIXTURES
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.parallel import EMPTY_PLAN
from bakeoff.doors.pytest.session import session_of
from bakeoff.plan import Case, PassRule, SubjectSpec
from bakeoff.record import Failure, Phase, Record

STOPPED = "it was not run: the session was stopped before"
_CALLS_NO_TEST = ("setuponly", "setupplan", "collectonly")  # options
_FOR_PYTEST = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception, unittest.SkipTest)
_LONGEST = 300


class CollectedItems(FrozenModel):
    """An eval before it is run."""

    nodeid: str
    suite: str
    case: str  # the name of its row
    id: str  # of its case in the run
    input: str = ""
    expected: JsonValue = None
    rule: PassRule = PassRule()
    parameters: str = ""

    def lost(self, why: str, subject: SubjectSpec) -> EvalOutcome:
        """Return the outcome of an eval that was not run."""
        shown: dict[str, Any] = self.model_dump(include={"nodeid", "suite", "case", "parameters"})
        outcome = EvalOutcome(**shown, input=self.input, expected=self.expected, rule=self.rule, subject=subject)
        case = Case(id=self.id, prompt=outcome.input, expected=self.expected)
        trial = EMPTY_PLAN.trial_of(case, subject, 0, 0)
        failure = Failure(kind="infra", type="InfraError", message=why, permanent=True)
        record = Record(
            **trial.identity,
            started=time.time(),
            tries=0,
            threshold=self.rule.threshold,
            attempt=Phase(seconds=0.0, failure=failure),
        )
        return outcome.judged([record])


def collected(item: Any) -> CollectedItems | None:
    """Return an item as data if it is an eval of a suite, or a test that uses a fixture of evals."""
    group = getattr(item, "group", None)
    if isinstance(group, Group):
        row = item.row
        return CollectedItems(
            nodeid=item.nodeid,
            suite=group.suite,
            case=row.id,
            id=group.case_id(row),
            input=row.shown_input,
            expected=row.expected,
            rule=row.rule(group.described.settings.rule),
            parameters=group.parameters,
        )
    if not FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        name = getattr(item, "originalname", None) or item.name
        return CollectedItems(nodeid=item.nodeid, suite=name, case=name, id=escaped(item.nodeid))
    return None


def subjects_among(items: Iterable[Any], kept: Sequence[Group] = ()) -> dict[str, SubjectSpec]:
    """Return the subjects of these items, and of groups whose results are kept, by their parameters."""
    groups = dict.fromkeys(group for item in items if isinstance(group := getattr(item, "group", None), Group))
    return subjects_of(dict.fromkeys([*groups, *kept]))


def write_collected(path: Path, items: Iterable[Any], kept: Sequence[Group] = ()) -> None:
    """Write the evals among these items, for the process that reports."""
    items = list(items)
    evals = [one for one in map(collected, items) if one is not None]
    if evals:
        subjects = {name: spec.model_dump(mode="json") for name, spec in subjects_among(items, kept).items()}
        lines = (one.model_dump_json(exclude_defaults=True) for one in evals)
        path.write_text("\n".join([json.dumps(subjects), *lines]), encoding="utf-8")


def read_collected(path: Path) -> tuple[list[CollectedItems], dict[str, SubjectSpec]]:
    """Return what a worker has collected, and the subjects by their parameters; nothing if it did not get that far."""
    if not path.exists() or not (text := path.read_text(encoding="utf-8")):
        return [], {}
    first, *lines = text.split("\n")
    subjects = {name: SubjectSpec.model_validate(spec) for name, spec in json.loads(first).items()}
    return [CollectedItems.model_validate_json(line) for line in lines], subjects


def lost_by_error(item: pytest.Item, call: pytest.CallInfo[None]) -> EvalOutcome | None:
    """Return the outcome of an eval that an error kept from being run; None if a skip did."""
    error = call.excinfo.value if call.excinfo else None
    one = collected(item)
    if error is None or one is None or isinstance(error, _FOR_PYTEST):
        return None
    said = f"{type(error).__name__}: {error}"[:_LONGEST]
    where = "in a fixture" if call.when == "setup" else "in the test, before its eval"
    subject = session_of(item.config).subjects[one.parameters]
    return one.lost(f"it was not run: an error {where}: {said}", subject)


def lost_unawaited(item: pytest.Item, why: str) -> EvalOutcome:
    """Return the outcome of an eval that its test called and did not await. The test may have made others."""
    one = collected(item)
    assert one is not None
    if LOGGED in item.stash:
        del item.stash[LOGGED]  # the test itself neither passed nor failed
    named = one.model_copy(update={"id": f"{one.id} (not awaited)"})
    return named.lost(why, session_of(item.config).subjects[one.parameters])


def all_lost(
    session: pytest.Session, written: str, seen: Collection[str], crashed: Mapping[str, str]
) -> Iterator[EvalOutcome]:
    """Yield the outcomes of the evals that nobody has reported.

    Args:
        session: The session at its end.
        written: The file of a worker of xdist; empty if this process collected the items.
        seen: The tests that were reported, by node id.
        crashed: What is known of tests whose worker crashed.
    """
    if any(session.config.getoption(name, False) for name in _CALLS_NO_TEST):
        return
    if written:
        evals, subjects = read_collected(Path(written))
        missing = [one for one in evals if one.nodeid not in seen]
    else:
        left = [item for item in session.items if item.nodeid not in seen]
        missing = [one for one in map(collected, left) if one is not None]
        subjects = subjects_among(session.items, session.config.stash.get(KEPT_GROUPS, ()))
    for one in missing:
        yield one.lost(crashed.get(one.nodeid, STOPPED), subjects[one.parameters])
