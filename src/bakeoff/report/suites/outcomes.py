"""The result of one eval, which is sent from a worker to the controller and used by every report."""

from collections.abc import Sequence
from typing import Any, Self

from bakeoff._kernel.json import CleanJson, CleanText, clean_text
from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import escaped
from bakeoff.plan import PassRule, SubjectSpec
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.verdict import LOST, case_verdict

SUBJECT = "evals"
"""The name of the subject without parameters: the project as it is."""

_OWN_ERRORS = ("GraderError", "InfraError")  # their messages are clear without the type
_DEFAULT_RULE = PassRule()


class EvalOutcome(FrozenModel):
    """One case of a suite, or one `to_eval`, with a record for each round."""

    nodeid: CleanText
    suite: CleanText  # its name for users: the test function, or the name given to `describe_eval`
    case: CleanText
    input: CleanText  # as it is shown
    expected: CleanJson = None
    rule: PassRule = _DEFAULT_RULE
    scorers: dict[CleanText, str] = sparse_field({})  # digests by name; none where they are not known
    parameters: CleanText = ""  # of pytest's `parametrize`, where they are a column of the matrix
    subject: SubjectSpec | None = None  # of the records; each process sends it once
    records: tuple[Record, ...] = ()
    score: float | None = None  # compared with the threshold
    passed: bool | None = None  # None: recorded without a threshold, or undecided
    problem: CleanText | None = None  # why it is undecided: a broken scorer, or a task that could not be run

    def judged(self, records: Sequence[Record], **more: Any) -> Self:
        """Return the outcome with these records and the verdict derived from them.

        `more` are other fields to replace; they are not validated, so their texts must be clean.
        """
        verdict = case_verdict(self.rule, [record.judged() for record in records])
        problem = _problem(records) if verdict.verdict in LOST else None
        judged = {"score": verdict.score, "passed": verdict.passed, "problem": problem and clean_text(problem)}
        return self.model_copy(update={**more, "records": tuple(records), **judged})

    @property
    def case_id(self) -> str:
        """Return the id of the case: the node id without the parameters of the subject."""
        return escaped(self.nodeid.replace(f"[{self.parameters}-", "[", 1) if self.parameters else self.nodeid)

    @property
    def threshold(self) -> float | None:
        """Return the score that the case must reach, or None if it is only recorded."""
        return self.rule.threshold

    @property
    def seconds(self) -> float:
        """Return the time that the task itself took, over all rounds."""
        return sum(record.attempt.working_seconds for record in self.records if record.attempt)

    @property
    def used(self) -> Usage:
        """Return the usage of the task; scorers are counted in `judging`."""
        return sum((record.used for record in self.records), NO_USAGE)

    @property
    def judging(self) -> Usage:
        """Return the usage of scorers."""
        return sum((record.judging for record in self.records), NO_USAGE)


def _problem(records: Sequence[Record]) -> str:
    """Say why a case could not be judged."""
    for record in records:
        broken: list[str] = []
        for name, failure in ((score.name, score.failure) for score in record.scores if score.failure is not None):
            kind = "" if failure.type in _OWN_ERRORS else f"{failure.type}: "
            said = failure.message.startswith(f"scorer {name!r}")
            broken.append(failure.message if said else f"scorer {name!r}: {kind}{failure.message}")
        if broken:
            return "; ".join(broken)
        if record.failure is not None and record.verdict in LOST:
            return record.failure.message
    unscored = [f"{score.name}: {score.reason or 'unscored'}" for record in records[:1] for score in record.scores]
    return f"no scorer gave a score: {'; '.join(unscored) or 'there was no output'}"


def subject_name(parameters: str) -> str:
    """Return the name of the subject with these parameters, as pytest writes them in the id of a test."""
    return parameters if parameters and parameters != SUBJECT else f"[{parameters}]" if parameters else SUBJECT
