"""The verdicts of cases, derived from the rounds of each while records stream by."""

from collections.abc import Iterable, Iterator

from bakeoff.plan import PassRule, Plan
from bakeoff.record import CaseVerdict, Record, Round, Verdict, case_verdict


class CaseVerdicts:
    """Collect rounds by subject and case, and derive the verdict of each case.

    Every round must pass where a case has no rule of its own. With `ruled_only`, such cases are not collected: their
    trials are judged one by one.
    """

    def __init__(self, plan: Plan, *, ruled_only: bool = False) -> None:
        self._rules = {case.id: case.pass_rule for case in plan.cases if case.pass_rule is not None}
        self._default = None if ruled_only else PassRule(threshold=plan.threshold, gate="share")
        self._planned = None if plan.sparse else plan.rounds
        self._rounds: dict[tuple[str, str], list[Round]] = {}

    def add(self, record: Record) -> bool:
        """Collect one round; return False for a case whose trials are judged one by one."""
        if self._rules.get(record.case, self._default) is None:
            return False
        self._rounds.setdefault((record.subject, record.case), []).append(Round.of(record))
        return True

    def collect(self, records: Iterable[Record]) -> Iterator[Record]:
        """Collect records on their way to someone else."""
        for record in records:
            self.add(record)
            yield record

    def of(self, subject: str, case: str) -> CaseVerdict:
        """Return the verdict of a case; it is None in full where no round was collected."""
        rule = self._rules.get(case, self._default)
        rounds = self._rounds.get((subject, case), ())
        return case_verdict(rule, rounds, self._planned) if rule else CaseVerdict(None)

    def of_subject(self, subject: str) -> Iterator[Verdict | None]:
        """Yield the verdicts of the cases that rounds of a subject were collected of."""
        return (self.of(name, case).verdict for name, case in self._rounds if name == subject)

    def passed(self, record: Record) -> bool:
        """Tell whether the case of a record passed as a whole, whatever became of this round."""
        return self.of(record.subject, record.case).happy
