"""Evals as a plan and records, for `bakeoff compare`, `report` and `export`, and for the page."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bakeoff._kernel.files import open_file
from bakeoff._kernel.text import visible
from bakeoff._version import __version__
from bakeoff.doors.pytest.groups import SUBJECT, subject_name
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.reporting.eval_file import read_eval_file
from bakeoff.doors.pytest.reporting.numbers import file_part
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.readers import Circumstances, Description

_HEAD = 200
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*"bakeoff-evals"')
_MAX_NAME_LENGTH = 300


class EvalFileReader:
    """Reads files that `--eval-json` or `bakeoff merge` wrote, or evals that are `held` in memory."""

    what = "an eval file (.json, from pytest --eval-json)"

    def __init__(self, held: Sequence[EvalOutcome] | None = None) -> None:
        self._held = held

    def recognises(self, path: Path) -> bool:
        if path.suffix != ".json" or not path.is_file():
            return False
        with open_file(path) as file:
            return bool(_BEGINNING.match(file.read(_HEAD)))

    def _outcomes(self, path: Path) -> Sequence[EvalOutcome]:
        return read_eval_file(path).outcomes if self._held is None else self._held

    def describe(self, path: Path) -> Description:
        name = path.stem if path.stem.strip() and path.stem.isprintable() else SUBJECT
        return Description(name=visible(path.name), plan=plan_of(self._outcomes(path), name))

    def circumstances(self, path: Path) -> Circumstances:
        made = read_eval_file(path).bakeoff if self._held is None else __version__
        return Circumstances(versions=(made,) if re.fullmatch(r"\d[\w.+-]{0,30}", made) else ())

    def read(self, path: Path) -> Iterator[Record]:
        outcomes = self._outcomes(path)
        for (subject, case), outcome in zip(_places(outcomes), outcomes, strict=True):
            for round_, record in enumerate(outcome.records):
                yield record.model_copy(update={"case": case, "subject": subject, "round": round_})


def plan_of(outcomes: Sequence[EvalOutcome], name: str = SUBJECT) -> Plan:
    """Make a plan of outcomes, with a subject for each set of parameters.

    The plan has the most rounds of any suite; each case has the pass rule of its suite.
    """
    places = _places(outcomes)
    cases: dict[str, EvalOutcome] = {}
    for (_, case), outcome in zip(places, outcomes, strict=True):
        cases.setdefault(case, outcome)
    names = dict.fromkeys(score.name for outcome in outcomes for record in outcome.records for score in record.scores)
    scorers = tuple(ScorerSpec(kind="recorded", name=visible(each)) for each in names if each.strip())
    subjects = dict.fromkeys(subject for subject, _ in places) or (SUBJECT,)
    thresholds = {outcome.threshold for outcome in outcomes if outcome.threshold is not None}
    return Plan(
        name=name,
        cases=tuple(_case(case, outcome) for case, outcome in cases.items()),
        subjects=tuple(SubjectSpec(kind="recorded", name=name) for name in subjects),
        scorers=scorers or (ScorerSpec(kind="recorded"),),
        rounds=max([1, *(len(outcome.records) for outcome in outcomes)]),
        threshold=max(thresholds, default=None),
        sparse=True,
    )


def _case(name: str, outcome: EvalOutcome) -> Case:
    tags = {"suite": visible(outcome.suite), "file": visible(file_part(outcome.nodeid))}
    return Case(id=name, prompt=outcome.input, expected=outcome.expected, tags=tags, pass_rule=outcome.rule)


def _places(outcomes: Sequence[EvalOutcome]) -> list[tuple[str, str]]:
    """Return the subject and case of each outcome; no two are the same."""
    by_subject: dict[str, list[int]] = {}
    for place, outcome in enumerate(outcomes):
        name = visible(subject_name(outcome.parameters), _MAX_NAME_LENGTH).strip() or SUBJECT
        by_subject.setdefault(name, []).append(place)
    found = [("", "")] * len(outcomes)
    for name, places in by_subject.items():
        cases = case_ids([_without_parameters(outcomes[place]) for place in places])
        for place, case in zip(places, cases, strict=True):
            found[place] = (name, case)
    return found


def _without_parameters(outcome: EvalOutcome) -> EvalOutcome:
    if not outcome.parameters:
        return outcome
    return outcome.model_copy(update={"nodeid": outcome.nodeid.replace(f"[{outcome.parameters}-", "[", 1)})


def case_ids(outcomes: Sequence[EvalOutcome]) -> list[str]:
    """Name each case by its node id, with a number from the second eval of one test on."""
    ids: dict[str, None] = {}
    met: Counter[str] = Counter()
    for outcome in outcomes:
        name = unique = visible(outcome.nodeid, _MAX_NAME_LENGTH).strip() or "?"
        while unique in ids:
            met[name] += 1
            unique = f"{name} #{met[name] + 1}"
        ids[unique] = None
    return list(ids)
