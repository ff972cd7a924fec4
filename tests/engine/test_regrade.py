"""Verdicts are derived again from recorded answers, so that a run forged by its owner is found, signed or not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.engine.registry import default_registry
from bakeoff.engine.regrade import Regrading, regrade
from bakeoff.options import RunOptions
from bakeoff.plan import Case, PassRule, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import PROVEN_TESTS, Failure, Phase, Record, Score, Step, Text, Transcript
from bakeoff.storage.run_folder import RunFolder
from bakeoff.storage.signature import make_key, sign_run

from ..report.runs import record_of, write_run

Run = tuple[Plan, list[Record]]
Forgery = Callable[[Plan, list[Record]], Run]

LATE = Phase(seconds=1.0, failure=Failure(kind="infra", type="OSError", message="the disk is full"))
PLAN = Plan(
    name="sums",
    cases=tuple(Case(id=f"case-{n}", prompt=f"What is {n} + {n}?", expected=str(2 * n)) for n in range(4)),
    subjects=(SubjectSpec(kind="nop", name="one"), SubjectSpec(kind="nop", name="two")),
    scorers=(ScorerSpec(kind="exact"), ScorerSpec(kind="contains")),
    rounds=2,
    threshold=1.0,
)


def honest() -> list[Record]:
    """`two` is wrong about case 1 in both rounds, and `one` is right about everything."""
    records = []
    for trial in PLAN.trials():
        wrong = trial.subject.name == "two" and trial.case.id == "case-1"
        value = 0.0 if wrong else 1.0
        scores = (Score(name="exact", value=value), Score(name="contains", value=value))
        records.append(record_of(trial, output="7" if wrong else str(trial.case.expected), scores=scores))
    return records


def is_wrong(record: Record) -> bool:
    return record.subject == "two" and record.case == "case-1"


def changed(which: Callable[[Record], bool], **update: Any) -> Forgery:
    """Change the fields of some records; a function gets the record."""

    def forge(plan: Plan, records: list[Record]) -> Run:
        made = {name: value if callable(value) else lambda _, value=value: value for name, value in update.items()}
        return plan, [
            record.model_copy(update={name: make(record) for name, make in made.items()}) if which(record) else record
            for record in records
        ]

    return forge


def scored(*values: float | None) -> tuple[Score, ...]:
    return tuple(Score(name=name, value=value) for name, value in zip(("exact", "contains"), values, strict=True))


def lost(kind: str) -> tuple[Score, ...]:
    failure = Failure(kind=kind, type="Broken", message="it could not be scored")
    return (Score(name="exact", failure=failure), Score(name="contains", failure=failure))


def answering(text: str) -> Callable[[Record], Any]:
    return lambda record: (record.transcript or Transcript()).model_copy(update={"output": text})


def first_wrong(record: Record) -> bool:
    return is_wrong(record) and record.round == 0


def of_case(number: int) -> Callable[[Record], bool]:
    return lambda record: record.case == f"case-{number}"


def dropped(which: Callable[[Record], bool]) -> Forgery:
    return lambda plan, records: (plan, [record for record in records if not which(record)])


def edited(number: int, *, rekeyed: bool = False, **update: Any) -> Forgery:
    """Edit a case, and, if wanted, give all records the keys that belong to it now."""

    def forge(plan: Plan, records: list[Record]) -> Run:
        cases = [case.model_copy(update=update) if case.id == f"case-{number}" else case for case in plan.cases]
        return with_keys(Plan(**{**dict(plan), "cases": tuple(cases)}), records, rekeyed=rekeyed)

    return forge


def rescored_by(*scorers: ScorerSpec) -> Forgery:
    return lambda plan, records: with_keys(Plan(**{**dict(plan), "scorers": scorers}), records, rekeyed=True)


def with_keys(plan: Plan, records: list[Record], *, rekeyed: bool) -> Run:
    if not rekeyed:
        return plan, records
    trials = [plan.find(record.case, record.subject, record.round) for record in records]
    keys = [{"attempt_key": trial.attempt_key, "score_key": trial.score_key} for trial in trials if trial]
    return plan, [record.model_copy(update=key) for record, key in zip(records, keys, strict=True)]


def swapped(plan: Plan, records: list[Record]) -> Run:
    """Exchange the answers of both subjects on one case, and leave their scores."""
    ours, theirs = (
        next(i for i, r in enumerate(records) if (r.case, r.subject, r.round) == ("case-1", name, 0))
        for name in ("one", "two")
    )
    answers = records[ours].transcript, records[theirs].transcript
    records[ours] = records[ours].model_copy(update={"transcript": answers[1]})
    records[theirs] = records[theirs].model_copy(update={"transcript": answers[0]})
    return plan, records


def appended(plan: Plan, records: list[Record]) -> Run:
    """Add a newer record, as a resumed run does."""
    wrong = next(record for record in records if is_wrong(record))
    return plan, [*records, wrong.model_copy(update={"scores": scored(1.0, 1.0), "started": wrong.started + 9})]


def more_rounds(plan: Plan, records: list[Record]) -> Run:
    return plan.model_copy(update={"rounds": 3}), records


FORGERIES: dict[str, Forgery] = {
    "a failure passes": changed(first_wrong, scores=scored(1.0, 1.0)),
    "all failures pass": changed(is_wrong, scores=scored(1.0, 1.0)),
    "one scorer of two says yes": changed(first_wrong, scores=scored(1.0, 0.0)),
    "half a point more": changed(first_wrong, scores=scored(0.5, 0.5)),
    "a rival fails": changed(lambda r: r.subject == "one" and r.case == "case-0", scores=scored(0.0, 0.0)),
    "a rival fails a little": changed(lambda r: r.subject == "one", scores=scored(1.0, 0.999)),
    "a score is left out": changed(first_wrong, scores=scored(None, None)),
    "a scorer is left out": changed(is_wrong, scores=()),
    "a scorer is added": changed(
        lambda r: r.subject == "two", scores=lambda r: (*r.scores, Score(name="x", value=1.0))
    ),
    "a scorer has another name": changed(is_wrong, scores=(Score(name="style", value=1.0),)),
    "lost to the grader": changed(is_wrong, scores=lost("grader")),
    "lost to infra": changed(is_wrong, scores=lost("infra")),
    "lost to the budget": changed(first_wrong, scores=lost("budget")),
    "lost after it was scored": changed(is_wrong, score=LATE),
    "lost before it answered": changed(first_wrong, prepare=LATE),
    "a rival was given the hidden files": changed(lambda r: r.subject == "one", bound=True),
    "more tests are proven": changed(
        lambda _: True,
        scores=lambda r: tuple(
            score.model_copy(update={"metadata": {PROVEN_TESTS: {"proven": 9, "total": 9}}}) for score in r.scores
        ),
    ),
    "a lower threshold": changed(is_wrong, threshold=0.0),
    "no threshold": changed(is_wrong, threshold=None),
    "another threshold for all": changed(lambda _: True, threshold=0.5),
    "the right answer, and its score": changed(first_wrong, transcript=answering("2"), scores=scored(1.0, 1.0)),
    "the right answer alone": changed(first_wrong, transcript=answering("2")),
    "a wrong answer for a rival": changed(lambda r: r.subject == "one", transcript=answering("8")),
    "no answer, and a pass": changed(of_case(2), transcript=lambda r: r.transcript.model_copy(update={"output": None})),
    "answers exchanged": swapped,
    "a case with another expected answer": edited(1, expected="7"),
    "a case with another question": edited(1, prompt="What is 3 + 4?"),
    "a case with another answer and all keys": edited(1, rekeyed=True, expected="7"),
    "a case that got a scorer of its own": edited(1, rekeyed=True, scorers=(ScorerSpec(kind="contains", name="easy"),)),
    "the plan has fewer scorers": rescored_by(ScorerSpec(kind="contains")),
    "a failure is dropped": dropped(first_wrong),
    "all failures are dropped": dropped(is_wrong),
    "a round is dropped": dropped(lambda r: r.round == 1),
    "all failures are dropped, and the plan is sparse": lambda plan, records: (
        plan.with_changes(sparse=True),
        [record for record in records if not is_wrong(record)],
    ),
    "a subject is dropped": dropped(lambda r: r.subject == "two"),
    "a newer record says otherwise": appended,
    "rounds that never ran": more_rounds,
}


async def regraded(run: RunFolder) -> Regrading:
    plan = run.read_plan()
    options = RunOptions(sandbox="process", jobs=4)
    resolved = default_registry().resolve(plan, offline=True, attempts=False)
    return await regrade(run, plan, resolved, options)


async def test_an_honest_run_matches(tmp_path: Path) -> None:
    found = await regraded(write_run(tmp_path / "run", PLAN, honest()))
    assert (found.outcome, found.matched) == ("MATCH", PLAN.size), found


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forgery_is_found_although_it_is_signed(name: str, tmp_path: Path) -> None:
    plan, records = FORGERIES[name](PLAN, honest())
    run = write_run(tmp_path / "run", plan, records)
    sign_run(run, make_key(tmp_path / "key.pem"))
    found = await regraded(run)
    assert found.outcome == "DIVERGES", found


async def test_trials_that_a_sparse_plan_may_not_have_planned_are_no_forgery(tmp_path: Path) -> None:
    """pytest writes such plans: each suite has rounds of its own."""
    kept = [record.model_copy(update={"threshold": 0.5}) for record in honest() if record.round == 0]
    rule = PassRule(threshold=0.5)  # of the suite, which decides instead of the plan's threshold
    cases = tuple(case.model_copy(update={"pass_rule": rule}) for case in PLAN.cases)
    run = write_run(tmp_path / "run", PLAN.with_changes(sparse=True, cases=cases), kept)
    found = await regrade(run, run.read_plan(), "its scorers are not here", RunOptions())
    assert (found.outcome, len(found.underived)) == ("INCOMPLETE", PLAN.size)


async def test_what_cannot_be_derived_is_named_and_is_no_match(tmp_path: Path) -> None:
    failure = Failure(kind="timeout", type="TimeoutError", message="too late")
    plan, records = changed(first_wrong, attempt=Phase(seconds=1.0, failure=failure), scores=())(PLAN, honest())
    found = await regraded(write_run(tmp_path / "run", plan, records))
    assert (found.outcome, found.matched) == ("INCOMPLETE", PLAN.size - 1)
    assert list(found.underived) == ["round 1 of 'two' on 'case-1'"]
    assert "timeout" in found.underived["round 1 of 'two' on 'case-1'"]


@pytest.mark.full
async def test_a_judge_without_a_recording_is_not_derived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    judge = ScorerSpec(kind="judge", options={"model": "openai:gpt-5", "criteria": "Is it right?"})
    asked = tuple(SubjectSpec(kind="scripted", name=name, options={"default": "?"}) for name in ("one", "two"))
    plan = Plan(**{**dict(PLAN), "subjects": asked, "scorers": (ScorerSpec(kind="exact"), judge)})
    scores = (Score(name="exact", value=1.0), Score(name="judge", value=1.0))
    records = [record_of(trial, output=str(trial.case.expected), scores=scores) for trial in plan.trials()]
    found = await regraded(write_run(tmp_path / "run", plan, records))
    assert found.outcome == "INCOMPLETE", found
    assert not found.diverging
    assert {name.rpartition(": ")[2] for name in found.underived} == {"judge"}


@pytest.mark.parametrize(
    ("kind", "metadata", "outcome"),
    [
        ("nop", {}, "DIVERGES"),
        ("function", {}, "INCOMPLETE"),  # it may make its answer of what was said
        ("nop", {"meter": {"shortened": 1}}, "INCOMPLETE"),  # what it said last was not kept
    ],
)
async def test_an_answer_that_stands_nowhere_diverges_unless_it_can_be_honest(
    kind: str, metadata: dict[str, Any], outcome: str, tmp_path: Path
) -> None:
    plan = Plan(**{**dict(PLAN), "subjects": (SubjectSpec(kind=kind, name="one"),)})
    transcript = Transcript(output="2", steps=(Step(parts=(Text(text="two"),)),), metadata=metadata)
    records = [record_of(trial).model_copy(update={"transcript": transcript}) for trial in plan.trials()]
    run = write_run(tmp_path / "run", plan, records)
    found = await regrade(run, run.read_plan(), "its scorers are not here", RunOptions())
    assert found.outcome == outcome, found
