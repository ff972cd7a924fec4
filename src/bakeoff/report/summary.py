"""Compute the numbers of a run in one pass. Memory grows with cases × subjects."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from statistics import fmean
from typing import Literal

from pydantic import Field

from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import visible
from bakeoff.plan import CLUSTER_TAG, CONTROLS, PassRule, Plan, SubjectSpec
from bakeoff.record import BROKEN, NO_USAGE, OPENED, Answers, Failure, ProvenTests, Record, TestShares, UnitTests, Usage
from bakeoff.report.reasons import normalised
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.gates import Losses, unequal_losses
from bakeoff.stats.gates import UnequalLosses as UnequalLosses
from bakeoff.stats.intervals import Interval as Interval  # doors write these types into their files
from bakeoff.stats.intervals import amount_interval, score_interval
from bakeoff.stats.rounds import PassK as PassK
from bakeoff.stats.rounds import pass_at_k, pass_hat_k
from bakeoff.stats.sequential import PairDecision, PairDecisions, SequentialDecision
from bakeoff.storage.ledger import Ledger, Missing, ShardsHere, missing_kind, scorers_heard, silent_scorers
from bakeoff.verdict import LOST, CaseVerdict, Round, Verdict, case_values, case_verdict

MAX_ROUNDS = 100
"""The number of rounds up to which each round has its own mean."""

_MAX_REASONS = 5  # of lost trials, for each subject
_MAX_ROUNDS_SHARED = 10_000  # different ones
_REASON = 200  # characters
_TRACEBACK = "Traceback (most recent call last):"
_TALLIED = (
    *("bound", "scored", "spent", "judging", "estimated", "watched", "opened"),
    *("unit_tests", "tests", "same_error", "lost_by"),
)

AmountsByUnit = dict[str, tuple[int, float]]
"""The number of trials and the sum of an amount, by case, or by cluster if cases are tagged."""

Outcome = Literal["passed", "failed", "incomplete", "recorded"]


def lost_reason(record: Record) -> str:
    """Return why a trial was lost, in one line."""
    broken = (score.failure for score in record.scores if score.failure is not None)
    failure = record.failure or next(broken, None)
    unscored = (f"{score.name}: {score.reason}" for score in record.scores if score.value is None and score.reason)
    return visible(failure.message if failure else next(unscored, "no scorer returned a number"), _REASON)


def error_line(failure: Failure) -> str:
    """Return the error of a subject in one line; of a traceback, return only the end."""
    before, _, traced = failure.message.strip().partition(_TRACEBACK)
    message = (before + traced.rpartition("\n")[2]).partition("\n")[0]
    said = message if failure.type == "SubjectError" else f"{failure.type}: {message}".removesuffix(": ")
    return visible(said, _REASON)


def is_control(spec: SubjectSpec, *, bound: bool) -> bool:
    """Tell whether a subject is a control; `bound` means that it was given the cases' hidden parts.

    The options of a subject imported from one of our files hold its original kind.
    """
    file = spec.options.get("bakeoff") if spec.kind == "recorded" else None
    return bound or (file.get("kind") if isinstance(file, dict) else spec.kind) in CONTROLS


def losses_of(subjects: "Iterable[SubjectSummary]") -> dict[str, Losses]:
    """Count the finished trials of each subject, and those lost to infrastructure or graders.

    Controls are left out, because they are not compared.
    """
    return {one.subject: Losses.of(one.verdicts) for one in subjects if not one.control}


class Loss(FrozenModel):
    """Trials that were lost for one reason."""

    verdict: Verdict
    reason: str
    trials: int


class SubjectSummary(FrozenModel):
    """One subject's numbers with every denominator."""

    subject: str
    bound: bool  # it was given the hidden parts of the cases on purpose
    control: bool = False  # it tests the cases and is not judged itself
    planned: int
    verdicts: dict[Verdict, int]  # of trials
    scored: int  # trials that say something about the subject
    judged: int  # trials that passed or failed; a case with a pass rule of its own counts once, for all its rounds
    passed: int  # of these
    failed: int  # of these
    cases: int  # cases with a score
    score: float | None  # the mean over these cases
    interval: Interval | None
    seconds: float | None  # mean of the scored trials
    spent: Usage  # by the subject itself
    priced: int = sparse_field(0)  # finished trials whose cost is known; 0 in files that do not say it
    judging: Usage = NO_USAGE  # by scorers on its answers
    estimated: int = 0  # trials whose tokens and cost are estimates, because a provider sent no usage
    watched: int = 0  # trials that noticed whether the files of a treatment were opened
    opened: int = 0  # of these, trials that opened at least one
    replayed: int = 0  # trials whose model answers came from recordings, at least in part
    recorded: int = 0  # trials that were answered live, and whose answers were kept for replays
    unit_tests: UnitTests | None = None  # where a scorer counts them one by one
    proven_tests: ProvenTests | None = None  # of all its cases, where tests are graded
    tests: TestShares | None = None  # where a share of the tests was hidden from the subjects
    visible_score: float | None = None  # the share of the visible tests that passed
    hidden_score: float | None = None
    hidden_difference: float | None = None  # visible minus hidden: the gain of hard-coded answers
    by_round: tuple[float | None, ...] = ()  # the mean over the cases of each round; empty where there are too many
    losses: tuple[Loss, ...] = ()  # the most frequent reasons of lost trials
    same_error: str | None = None  # the error of the subject that ended every finished trial
    not_needed: int = 0  # trials that were not run because every comparison of the subject was decided
    lost_by: dict[Missing, int] = {}  # lost trials by what kept them from a result
    silent: dict[str, int] = sparse_field({})  # scorers that gave no number for any trial, with their trials
    why_silent: dict[str, str] = sparse_field({})  # the first reason of each of them
    shards: ShardsHere | None = None  # the shards of a plan that are present; None: it was not split
    pass_at_k: PassK | None = None  # one of all rounds passes; over the cases of which no round was lost
    pass_hat_k: PassK | None = None  # all rounds pass
    costs: AmountsByUnit = Field(default={}, exclude=True)  # of all trials whose cost is known
    times: AmountsByUnit = Field(default={}, exclude=True)  # of the scored trials whose time is known

    @property
    def finished(self) -> int:
        """Return the number of trials with a record."""
        return sum(self.verdicts.values())

    @property
    def lost(self) -> dict[Verdict, int]:
        """Return the lost trials by verdict, without verdicts that did not occur."""
        return {verdict: self.verdicts[verdict] for verdict in sorted(LOST) if self.verdicts.get(verdict)}

    @property
    def ledger(self) -> Ledger:
        """Return what was planned for this subject, and how much of it passed, failed or is missing."""
        count = self.verdicts.get
        return Ledger(
            planned=self.planned,
            passed=count(Verdict.PASS, 0),
            failed=count(Verdict.FAIL, 0) + count(Verdict.TIMEOUT, 0),
            recorded=count(Verdict.RECORDED, 0),
            missing=self.lost_by | ({"not run": self.missing} if self.missing else {}),
            not_needed=self.not_needed,
            silent=self.silent,
            named=tuple(
                f"{self.subject}: {why}" for why in [*(each.reason for each in self.losses), *self.why_silent.values()]
            ),
            shards=self.shards,
        )

    @property
    def cost_interval(self) -> Interval | None:
        """Return the interval of the mean cost of a trial, or None if nothing varies or there is only one case."""
        return _amount_interval(self.costs)

    @property
    def time_interval(self) -> Interval | None:
        """Return the interval of the mean time of a scored trial; None if nothing varies or there is only one case."""
        return _amount_interval(self.times)

    @property
    def cost_per_trial(self) -> float | None:
        """Return the mean cost of the trials whose cost is known, or None if there are none."""
        return (
            self.spent.cost / (self.priced or self.finished) if self.finished and self.spent.cost is not None else None
        )

    @property
    def missing(self) -> int:
        """Return the number of trials without a record that are still to be run."""
        return self.planned - self.finished - self.not_needed


def _amount_interval(amounts: AmountsByUnit) -> Interval | None:
    """Return the interval of a mean. The units are cases or clusters, as trials of one case are not independent."""
    return amount_interval([count for count, _ in amounts.values()], [total for _, total in amounts.values()])


class Comparisons(FrozenModel):
    """The comparisons of a run that ends when they are decided, and the trials and cost saved."""

    alpha: float  # the chance that any pair is decided wrongly, at most
    margin: float | None
    pairs: tuple[PairDecision, ...]
    trials_planned: int
    trials_saved: int
    trials_left: int  # still to be run, or kept from starting by a limit; 0 where all cases were tried
    cost_saved: float | None  # estimated from the mean cost of each subject's trials; None where no cost is known

    @property
    def decided(self) -> bool:
        """Tell whether every pair is decided."""
        return all(pair.decision is not SequentialDecision.UNDECIDED for pair in self.pairs)


class UnfitCase(FrozenModel):
    """A case whose own reference fails some of its tests. These tests still count."""

    case: str
    broken: int
    tests: int | None  # all of its tests, where they are counted


class Summary(FrozenModel):
    """The numbers of a whole run."""

    name: str
    cases: int
    rounds: int
    threshold: float | None
    own_rules: bool = False  # cases say in the plan when they pass
    thresholds: tuple[float, ...] = ()  # of all cases, lowest first; none: scores are only recorded
    subjects: tuple[SubjectSummary, ...]
    unfit: tuple[UnfitCase, ...] = ()
    until_decided: bool = False  # the run could end early, so that intervals for a fixed number of cases promise less
    comparisons: Comparisons | None = None  # of such a run; None for a pytest session, whose own reports have them
    merged: bool = Field(default=False, exclude=True)  # from shards, of which some are missing
    unequal_losses: tuple[UnequalLosses, ...] = ()  # pairs of subjects that lost shares of their trials by no chance

    @property
    def planned(self) -> int:
        """Return the number of trials that were planned, over all subjects."""
        return sum(subject.planned for subject in self.subjects)

    @property
    def finished(self) -> int:
        """Return the number of trials with a record, over all subjects."""
        return sum(subject.finished for subject in self.subjects)

    @property
    def ledger(self) -> Ledger:
        """Return what was planned for all judged subjects, and how much of it passed, failed or is missing."""
        return Ledger.total(subject.ledger for subject in self.judged)

    @property
    def gated_ledger(self) -> Ledger:
        """Return the ledger for the gate of this run: a merge counts missing shards, the run of one shard does not."""
        return self.ledger if self.merged else self.ledger.of_its_shard

    @property
    def replayed(self) -> int:
        """Return the number of trials whose answers came from recordings, over all subjects."""
        return sum(subject.replayed for subject in self.subjects)

    @property
    def recorded(self) -> int:
        """Return the number of trials whose answers were kept for replays, over all subjects."""
        return sum(subject.recorded for subject in self.subjects)

    @property
    def complete(self) -> bool:
        """Tell whether every needed trial was scored, apart from those of controls.

        A decided run needs no more trials.
        """
        if self.comparisons is not None and self.comparisons.decided:
            return True
        return all(subject.scored + subject.not_needed == subject.planned for subject in self.judged)

    @property
    def ended(self) -> bool:
        """Tell whether no trial is left to run or to retry."""
        return self.complete and not any(subject.missing for subject in self.subjects)

    @property
    def judged(self) -> tuple[SubjectSummary, ...]:
        """Return the subjects without controls; all, if there are only controls."""
        return tuple(subject for subject in self.subjects if not subject.control) or self.subjects

    @property
    def only_controls(self) -> bool:
        """Tell whether all subjects are controls, so that none is judged."""
        return all(subject.control for subject in self.subjects)

    @property
    def all_passed(self) -> bool:
        """Tell whether nothing failed. Controls do not count: they only test the cases."""
        return not any(subject.failed for subject in self.subjects if not subject.control)

    @property
    def outcome(self) -> Outcome:
        """Return the verdict on the whole run, by the rule of the exit codes. A run of controls alone has none.

        A run in which trials are still to be run is incomplete even if others failed, because it can be resumed.
        """
        if not self.complete and any(subject.missing for subject in self.subjects):
            return "incomplete"
        if not self.all_passed:
            return "failed"
        if not self.complete:
            return "incomplete"
        return "passed" if any(subject.passed for subject in self.subjects if not subject.control) else "recorded"

    @property
    def spent(self) -> Usage:
        """Return everything that was paid for, judges included."""
        return sum((subject.spent for subject in self.subjects), self.judging)

    @property
    def judging(self) -> Usage:
        """Return what scorers used, over all subjects."""
        return sum((subject.judging for subject in self.subjects), NO_USAGE)


class CaseVerdicts:
    """The rounds of each case and subject, and the verdicts and scores derived from them.

    If a case has no rule of its own, every round must pass. With `ruled_only`, such cases are not collected: their
    trials are judged one by one.
    """

    def __init__(self, plan: Plan, *, ruled_only: bool = False) -> None:
        self._rules = {case.id: rule for case in plan.cases if (rule := case.rule_over_rounds) is not None}
        self._default = None if ruled_only else PassRule(threshold=plan.threshold, gate="share")
        self._planned = None if plan.sparse else plan.rounds
        self._rounds: dict[tuple[str, str], list[Round]] = {}
        self._same: dict[Round, Round] = {}  # equal rounds are kept once: a million have a few different scores

    def add(self, record: Record) -> bool:
        """Collect one round; return False for a case whose trials are judged one by one."""
        if self._rules.get(record.case, self._default) is None:
            return False
        found = record.judged()
        if len(self._same) < _MAX_ROUNDS_SHARED:
            found = self._same.setdefault(found, found)
        self._rounds.setdefault((record.subject, record.case), []).append(found)
        return True

    def of(self, subject: str, case: str) -> CaseVerdict:
        """Return the verdict of a case; an empty one if no round was collected."""
        rule = self._rules.get(case, self._default)
        rounds = self._rounds.get((subject, case), ())
        return case_verdict(rule, rounds, self._planned) if rule else CaseVerdict(None)

    def of_subject(self, subject: str) -> Iterator[tuple[str, Verdict | None, list[float]]]:
        """Yield each collected case of a subject with its verdict and the values of its score."""
        for (name, case), rounds in self._rounds.items():
            if name == subject and (rule := self._rules.get(case, self._default)):
                yield case, self.of(subject, case).verdict, case_values(rule, rounds)

    def passed(self, record: Record) -> bool:
        """Tell whether the case of a record passed as a whole, even if this round did not."""
        return self.of(record.subject, record.case).ok


class _Tally:
    """The running sums of one subject."""

    def __init__(self, cases: int, rounds: int) -> None:
        self.totals = array("d", bytes(8 * cases))  # of the scores of each case that has no rule of its own
        self.squares = array("d", bytes(8 * cases))  # of the same scores, squared
        self.counts = array("L", bytes(array("L").itemsize * cases))
        self.graded: dict[int, list[float]] = {}  # the scores of cases that have one besides 0 and 1
        self.tried = array("L", self.counts)  # the rounds of each case that passed or failed
        self.passes = array("L", self.counts)
        self.costs: dict[int, tuple[int, float]] = {}  # trials and their cost, by the place of the case
        self.times: dict[int, tuple[int, float]] = {}
        self.rounds = [[0.0, 0] for _ in range(rounds if rounds <= MAX_ROUNDS else 0)]  # total and count of each
        self.verdicts: Counter[Verdict] = Counter()
        self.judged: Counter[Verdict] = Counter()  # of trials, and of cases with a rule of their own
        self.scored = 0
        self.seconds = 0.0
        self.timed = 0  # scored trials whose time is known
        self.spent = self.judging = NO_USAGE
        self.bound = False
        self.answers: Counter[Answers] = Counter()
        self.losses: Counter[tuple[Verdict, str]] = Counter()
        self.lost_by: Counter[Missing] = Counter()
        self.heard: Counter[tuple[str, bool]] = Counter()  # scorers, by whether they gave a number
        self.why_unheard: dict[str, str] = {}  # the first reason of a scorer that gave none
        self.errors: dict[str, str] = {}  # of the subject, by what they have in common; at most two
        self.with_errors = 0
        self.watched = self.opened = self.estimated = 0
        self.tests: TestShares | None = None
        self.unit_tests: UnitTests | None = None
        self.proven: dict[int, ProvenTests] = {}  # by the place of the case

    def _add_tests(self, record: Record, place: int) -> None:
        if (proven := record.proven_tests) is not None:
            self.proven[place] = proven
        if (shares := record.test_shares) is not None:
            self.tests = shares if self.tests is None else self.tests + shares
        if (counted := record.unit_tests) is not None:
            self.unit_tests = counted if self.unit_tests is None else self.unit_tests + counted

    def _add_error(self, failure: Failure | None) -> None:
        if failure is None or failure.kind != "subject" or len(self.errors) > 1:
            return
        self.with_errors += 1
        line = error_line(failure)
        self.errors.setdefault(normalised(line), line)

    @property
    def same_error(self) -> str | None:
        every = len(self.errors) == 1 and self.with_errors == self.verdicts.total()
        return next(iter(self.errors.values())) if every else None

    def add(self, record: Record, place: int, *, alone: bool) -> None:
        """Count a trial. If `alone`, judge it separately from the other rounds of its case."""
        verdict, value = record.verdict, record.value
        self.verdicts[verdict] += 1
        if (kind := missing_kind(record)) is not None:
            self.lost_by[kind] += 1
            reason = lost_reason(record)
            few = len(self.losses) < MAX_ROUNDS or (verdict, reason) in self.losses
            self.losses[verdict, reason if few else "other reasons"] += 1
        self._add_error(record.failure)
        self.bound = self.bound or record.bound
        if record.spent is not NO_USAGE:
            self.spent += record.used
            self.judging += record.judging
        _add_amount(self.costs, place, record.used.cost)
        self.answers[record.answers] += 1
        self.estimated += record.usage_is_estimated
        opened = record.transcript and record.transcript.metadata.get(OPENED)
        if isinstance(opened, list):
            self.watched, self.opened = self.watched + 1, self.opened + bool(opened)
        if verdict.counts and verdict is not Verdict.RECORDED:
            self.tried[place] += 1
            self.passes[place] += verdict is Verdict.PASS
        scored = value is not None and verdict.counts
        if verdict.counts:
            self._add_tests(record, place)
            self.heard.update(scorers_heard(record.scores))
            told = {one.name: visible(one.reason, _REASON) for one in record.scores if one.value is None and one.reason}
            self.why_unheard = told | self.why_unheard
        if scored:
            self.scored += 1
            self.seconds += record.seconds
            self.timed += record.timed
            _add_amount(self.times, place, record.seconds if record.timed else None)
            if 0 <= record.round < len(self.rounds):
                self.rounds[record.round][0] += value or 0.0
                self.rounds[record.round][1] += 1
        if alone and not record.unjudged:
            self.judged[verdict] += 1
            if scored and value is not None:
                self._add_score(place, value)

    def _add_score(self, place: int, value: float) -> None:
        if place in self.graded or value not in (0, 1):
            passes = int(self.totals[place])
            before = [1.0] * passes + [0.0] * (self.counts[place] - passes)
            self.graded.setdefault(place, before).append(value)
        self.totals[place] += value
        self.squares[place] += value * value
        self.counts[place] += 1


def _add_amount(amounts: dict[int, tuple[int, float]], place: int, value: float | None) -> None:
    if value is not None:
        trials, total = amounts.get(place, (0, 0.0))
        amounts[place] = trials + 1, total + value


class RunTally:
    """A running count of records, which can be summarised at any time.

    Add each trial's latest record once, in any order.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._places = {case.id: place for place, case in enumerate(plan.cases)}
        self._tallies = {spec.name: _Tally(len(plan.cases), plan.rounds) for spec in plan.subjects}
        self.cases = CaseVerdicts(plan, ruled_only=True)
        self._unfit: dict[str, UnfitCase] = {}
        self._decisions = PairDecisions(plan) if plan.ends_when_decided else None

    def add(self, record: Record) -> None:
        """Count the latest record of a trial. Its case and subject must be in the plan."""
        if self._decisions is not None:
            self._decisions.add(record)
        for score in record.scores:
            if isinstance(broken := score.metadata.get(BROKEN), list):
                tests = record.unit_tests.total if record.unit_tests else None
                self._unfit[record.case] = UnfitCase(case=record.case, broken=len(broken), tests=tests)
        self._tallies[record.subject].add(record, self._places[record.case], alone=not self.cases.add(record))

    def cells(self, subject: str) -> dict[str, Cell]:
        """Return the cases of a subject that have a score."""
        return self._cells(subject, {case: values for case, _, values in self.cases.of_subject(subject)})

    def _cells(self, subject: str, ruled: Mapping[str, list[float]]) -> dict[str, Cell]:
        tally, cells = self._tallies[subject], {}
        sums_of_cases = zip(tally.counts, tally.totals, tally.squares, strict=True)
        for place, (case, sums) in enumerate(zip(self._plan.cases, sums_of_cases, strict=True)):
            cluster = case.tags.get(CLUSTER_TAG)
            if values := ruled.get(case.id):
                cells[case.id] = Cell.of(values, cluster)
            elif sums[0]:
                cells[case.id] = Cell(int(sums[0]), *sums[1:], cluster, tuple(tally.graded.get(place, ())))
        return cells

    def _passes(self, subject: str) -> Cells:
        """Return the number of passes of each case in which every round passed or failed."""
        tally, rounds = self._tallies[subject], self._plan.rounds
        counts = zip(self._plan.cases, tally.tried, tally.passes, strict=True)
        return {
            CaseKey(case.id): Cell(rounds, float(passed), float(passed), case.tags.get(CLUSTER_TAG))
            for case, tried, passed in counts
            if tried == rounds
        }

    def summary(self) -> Summary:
        """Return the numbers so far."""
        plan = self._plan
        subjects = tuple(map(self._subject, plan.subjects))
        return Summary(
            **{name: getattr(plan, name) for name in ("name", "rounds", "threshold", "thresholds")},
            cases=len(plan.cases),
            own_rules=any(case.rule_over_rounds is not None for case in plan.cases),
            subjects=subjects,
            unfit=tuple(self._unfit[case.id] for case in plan.cases if case.id in self._unfit),
            until_decided=plan.until_decided is not None,
            comparisons=self._comparisons(subjects),
            merged=plan.shard is not None and bool(plan.shard.merged),
            unequal_losses=unequal_losses(losses_of(subjects)),
        )

    def _comparisons(self, subjects: Sequence[SubjectSummary]) -> Comparisons | None:
        settings = self._plan.until_decided
        if settings is None or self._decisions is None:
            return None
        paid = [(one.not_needed, one.spent + one.judging, one.finished) for one in subjects if one.finished]
        costs = [count * used.cost / finished for count, used, finished in paid if used.cost is not None]
        return Comparisons(
            **settings.model_dump(include={"alpha", "margin"}),
            pairs=self._decisions.results(),
            trials_planned=sum(one.planned for one in subjects),
            trials_saved=sum(one.not_needed for one in subjects),
            trials_left=sum(one.missing + one.verdicts.get(Verdict.BUDGET, 0) for one in subjects),
            cost_saved=sum(costs) if costs else None,
        )

    def _subject(self, spec: SubjectSpec) -> SubjectSummary:
        tally, ruled = self._tallies[spec.name], [*self.cases.of_subject(spec.name)]
        cells = [*self._cells(spec.name, {case: values for case, _, values in ruled}).values()]
        judged = tally.judged + Counter(verdict for _, verdict, _ in ruled if verdict and verdict != Verdict.RECORDED)
        silent = silent_scorers(tally.heard)
        planned = self._plan.rounds * len(self._plan.cases)
        settled = self._decisions is not None and not self._decisions.needs(spec.name)
        rounds = self._plan.rounds
        passes = self._passes(spec.name) if rounds > 1 else {}
        most = tally.losses.most_common(_MAX_REASONS)
        losses = tuple(Loss(verdict=verdict, reason=reason, trials=count) for (verdict, reason), count in most)
        return SubjectSummary(
            **{name: getattr(tally, name) for name in _TALLIED},
            subject=spec.name,
            control=is_control(spec, bound=tally.bound),
            planned=tally.verdicts.total() if self._plan.sparse else planned,
            verdicts={verdict: tally.verdicts[verdict] for verdict in Verdict if tally.verdicts[verdict]},
            judged=sum(count for verdict, count in judged.items() if verdict.counts),
            passed=judged[Verdict.PASS],
            failed=judged[Verdict.FAIL] + judged[Verdict.TIMEOUT],
            cases=len(cells),
            score=fmean(cell.mean for cell in cells) if cells else None,
            interval=score_interval(cells),
            seconds=tally.seconds / tally.timed if tally.timed else None,
            replayed=tally.answers["replayed"],
            recorded=tally.answers["recorded"],
            proven_tests=reduce(add, tally.proven.values()) if tally.proven else None,
            visible_score=tally.tests and tally.tests.visible,
            hidden_score=tally.tests and tally.tests.hidden,
            hidden_difference=tally.tests and tally.tests.difference,
            by_round=tuple(total / count if count else None for total, count in tally.rounds),
            losses=losses,
            silent=silent,
            why_silent={name: why for name, why in tally.why_unheard.items() if name in silent},
            not_needed=planned - tally.verdicts.total() if settled else 0,
            shards=_shards_of(self._plan),
            pass_at_k=pass_at_k(passes, rounds) if passes else None,
            pass_hat_k=pass_hat_k(passes, rounds) if passes else None,
            priced=sum(count for count, _ in tally.costs.values()),
            costs=self._by_unit(tally.costs),
            times=self._by_unit(tally.times),
        )

    def _by_unit(self, amounts: Mapping[int, tuple[int, float]]) -> AmountsByUnit:
        found: AmountsByUnit = {}
        for place, (trials, paid) in amounts.items():
            case = self._plan.cases[place]
            tag = case.tags.get(CLUSTER_TAG)
            unit = f"case {case.id}" if tag is None else f"cluster {tag}"  # a case may have the name of a cluster
            before = found.get(unit, (0, 0.0))
            found[unit] = before[0] + trials, before[1] + paid
        return found


def _shards_of(plan: Plan) -> ShardsHere | None:
    """Return the present shards of a plan, also those without cases; None if it was not split."""
    if (shard := plan.shard) is None:
        return None
    empty = range(len(shard.numbers_with_cases) + 1, shard.of + 1)
    return ShardsHere(of=shard.of, numbers=(*(shard.merged or (shard.number,)), *empty))


def summarise(plan: Plan, records: Iterable[Record]) -> Summary:
    """Return the numbers of a run. `records` has each trial's latest record once, in any order."""
    return tallied(plan, records).summary()


def tallied(plan: Plan, records: Iterable[Record]) -> RunTally:
    """Return a tally of all records."""
    tally = RunTally(plan)
    for record in records:
        tally.add(record)
    return tally


def settled_subjects(plan: Plan, records: Iterable[Record]) -> set[str]:
    """Return the subjects that need no further trial, in a run that ends when it is decided."""
    if plan.until_decided is None:
        return set()
    decisions = PairDecisions.of(plan, records)
    return {name for name in plan.compared if not decisions.needs(name)}
