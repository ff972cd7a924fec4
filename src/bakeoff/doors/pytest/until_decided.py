"""Run no eval that decides nothing: order the cases at random, follow their results, skip what is not needed.

The sets of parameters of a suite are compared with each other. With a baseline, each is compared with the same suite in
that file instead. Only `--eval-until-decided` loads this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bakeoff._kernel.json import clean_text
from bakeoff._kernel.model import fingerprint
from bakeoff.doors.pytest.groups import Group, GroupItem, subject_name
from bakeoff.doors.pytest.options import rounds_of
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.parallel import EMPTY_PLAN
from bakeoff.plan import Case, PassRule, Plan, SubjectSpec, UntilDecided
from bakeoff.record import Record
from bakeoff.report.summary import Comparisons
from bakeoff.stats.decisions import PairDecision, PairDecisions, random_order
from bakeoff.verdict import Round, Verdict

BASELINE = "baseline"

_LOST = Round(Verdict.INFRA, None, failed=True)
_KEY = pytest.StashKey["SessionDecisions"]()


def decisions_of(config: pytest.Config) -> "SessionDecisions | None":
    """Return the comparisons of the session, or None where all cases are to be run."""
    return config.stash.get(_KEY, None)


def register(config: pytest.Config, baseline: Sequence[EvalOutcome] | None) -> "SessionDecisions":
    """Add the hooks of a session that ends when its evals are decided."""
    if config.getoption("numprocesses", None):
        raise pytest.UsageError(
            "--eval-until-decided does not work with xdist (-n): its workers do not know each other's results; "
            "leave one of them out (cases of a suite run side by side anyway)"
        )
    made = config.stash[_KEY] = SessionDecisions(config, baseline)
    config.pluginmanager.register(made, "bakeoff-until-decided")
    return made


@dataclass(slots=True, eq=False)
class _ArmComparison:
    """The comparison of some subjects over the cases that all of them have."""

    plan: Plan
    names: Mapping[str, str]  # by subject, for reports
    suite: str | None  # with its file and parameters, where it is compared with the baseline
    decisions: PairDecisions

    def results(self) -> Iterator[PairDecision]:
        for pair in self.decisions.results():
            yield pair.model_copy(update={"first": self.names[pair.first], "second": self.names[pair.second]})


@dataclass(slots=True, eq=False)
class _SuiteComparison:
    """One case of one subject that is part of a comparison."""

    comparison: _ArmComparison
    subject: str
    case: str
    cost: float | None = None
    state: str = "open"  # or "finished", or "saved"


@dataclass(slots=True, eq=False)
class _Suite:
    """The items of one suite, by its sets of parameters."""

    items: dict[Group, dict[str, Any]] = field(default_factory=dict)  # by case

    def add(self, item: GroupItem) -> None:
        self.items.setdefault(item.group, {})[item.group.case_id(item.row)] = item


class SessionDecisions:
    """The comparisons of one session, and pytest's hooks that keep them up to date."""

    def __init__(self, config: pytest.Config, baseline: Sequence[EvalOutcome] | None) -> None:
        self._config = config
        self._margin: float | None = config.getoption("eval_margin") or None
        self._before = None if baseline is None else {outcome.nodeid: outcome for outcome in baseline}
        self._comparisons: list[_ArmComparison] = []
        self._compared: dict[str, _SuiteComparison] = {}  # by node id
        self._alpha = UntilDecided().alpha

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find what is compared with what, and bring the cases of each suite into their random order."""
        suites: dict[tuple[object, ...], _Suite] = {}
        for item in items:
            if (key := _suite_key(item)) is not None:
                suites.setdefault(key, _Suite()).add(item)  # type: ignore[arg-type]
        drafts = [draft for suite in suites.values() for draft in self._drafts(suite)]
        pairs = sum(len(subjects) * (len(subjects) - 1) // 2 for subjects, _ in drafts)
        for subjects, cases in drafts:
            self._compare(subjects, cases, pairs)
        items[:] = self._ordered(items, suites)

    def _drafts(self, suite: _Suite) -> Iterator[tuple[dict[str, Group | None], dict[str, dict[str, Any]]]]:
        """Yield the subjects of each comparison and, by case, their items or earlier outcomes."""
        named = {subject_name(group.parameters): group for group in suite.items}
        if self._before is not None:
            for name, group in named.items():
                cases = {
                    case: {BASELINE: before, _other_than_baseline(name): item}
                    for case, item in suite.items[group].items()
                    if (before := self._before.get(clean_text(item.nodeid))) and _same_content(before, item)
                }
                if cases:
                    yield {BASELINE: None, _other_than_baseline(name): group}, cases
        elif len(named) > 1:
            common = set.intersection(*(set(suite.items[group]) for group in named.values()))
            first = next(iter(named.values()))
            cases = {
                case: {name: suite.items[group][case] for name, group in named.items()}
                for case in suite.items[first]
                if case in common
            }
            if cases:
                yield dict(named), cases

    def _compare(
        self, subjects: Mapping[str, Group | None], cases: Mapping[str, Mapping[str, Any]], pairs: int
    ) -> None:
        """Start one comparison; its share of the level is that of its pairs among all of the session."""
        group = next(group for group in subjects.values() if group is not None)
        settings, own = group.described.settings, len(subjects) * (len(subjects) - 1) // 2
        plan = EMPTY_PLAN.with_changes(
            cases=tuple(Case(id=case, prompt="", pass_rule=_rule(one) or settings.rule) for case, one in cases.items()),
            subjects=tuple(SubjectSpec(kind="eval", name=name) for name in subjects),
            rounds=rounds_of(self._config, settings),
            until_decided=UntilDecided(alpha=self._alpha * own / pairs, margin=self._margin),
        )
        names = {name: BASELINE if one is None else _shown(one) for name, one in subjects.items()}
        made = _ArmComparison(plan, names, self._suite_name(group), PairDecisions(plan))
        self._comparisons.append(made)
        for case, found in cases.items():
            for name, one in found.items():
                if isinstance(one, EvalOutcome):
                    for number in range(plan.rounds):  # its rounds may have been more or fewer: the score is their mean
                        made.decisions.add_round(name, case, number, _earlier(one))
                else:
                    self._compared[one.nodeid] = _SuiteComparison(made, name, case)

    def _suite_name(self, group: Group) -> str | None:
        return None if self._before is None else clean_text(f"{group.location[0]}::{_shown(group)}")

    def against_baseline(self) -> dict[str, PairDecision]:
        """Return the comparisons with the baseline, by suite."""
        return {one.suite: next(one.results()) for one in self._comparisons if one.suite is not None}

    def _ordered(self, items: Sequence[pytest.Item], suites: Mapping[tuple[object, ...], _Suite]) -> list[pytest.Item]:
        """Return the items with the cases of each suite in random order, the subjects of a case next to each other."""
        ordered: list[pytest.Item] = []
        for item in items:
            key = _suite_key(item)
            if key is None:
                ordered.append(item)
            elif (suite := suites[key]).items:
                ordered += self._suite_order(suite)
                suite.items = {}
        return ordered

    def _suite_order(self, suite: _Suite) -> list[Any]:
        every = [
            (case, place, item) for place, found in enumerate(suite.items.values()) for case, item in found.items()
        ]
        plan = EMPTY_PLAN.with_changes(
            cases=tuple(Case(id=case, prompt="") for case in dict.fromkeys(c for c, _, _ in every))
        )
        rank = {case.id: number for number, unit in enumerate(random_order(plan)) for case in unit}
        apart = any(_has_wide_parameters(item) for _, _, item in every)

        def key(entry: tuple[str, int, Any]) -> tuple[int, ...]:
            case, place, item = entry
            alone = item.nodeid not in self._compared  # it decides nothing, and is run in any case
            return (alone, place, rank[case]) if apart else (alone, rank[case], place)

        return [item for _, _, item in sorted(every, key=key)]

    def needs(self, item: Any) -> bool:
        """Tell whether an item can still decide anything, or is compared with nothing."""
        one = self._compared.get(item.nodeid)
        return one is None or one.comparison.decisions.needs(one.subject)

    def save(self, item: Any) -> None:
        """Note that an item is not run."""
        self._compared[item.nodeid].state = "saved"

    def add(self, item: Any, records: Iterable[Record]) -> None:
        """Take the rounds of an item into account."""
        one = self._compared.get(item.nodeid)
        if one is None:
            return
        one.state = "finished"
        for record in records:
            one.comparison.decisions.add_round(one.subject, one.case, record.round, record.judged())
            if record.spent.cost is not None:
                one.cost = record.spent.cost + (one.cost or 0.0)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Count a case that ended without a result, such as one that was skipped, as lost: no other waits for it."""
        one = self._compared.get(nodeid)
        if one is not None and one.state == "open":
            one.state = "finished"
            for number in range(one.comparison.plan.rounds):
                one.comparison.decisions.add_round(one.subject, one.case, number, _LOST)

    def comparisons(self) -> Comparisons | None:
        """Return the comparisons of the session so far; None if there was nothing to compare."""
        if not self._comparisons:
            return None
        trials = dict.fromkeys(("open", "finished", "saved"), 0)
        for one in self._compared.values():
            trials[one.state] += one.comparison.plan.rounds
        return Comparisons(
            alpha=self._alpha,
            margin=self._margin,
            pairs=tuple(pair for comparison in self._comparisons for pair in comparison.results()),
            trials_planned=sum(trials.values()),
            trials_saved=trials["saved"],
            trials_left=trials["open"],
            cost_saved=self._cost_saved(),
        )

    def _cost_saved(self) -> float | None:
        costs: dict[tuple[_ArmComparison, str], list[float]] = {}
        for one in self._compared.values():
            if one.cost is not None:
                costs.setdefault((one.comparison, one.subject), []).append(one.cost)
        means = {key: sum(found) / len(found) for key, found in costs.items()}
        saved = [(one.comparison, one.subject) for one in self._compared.values() if one.state == "saved"]
        return sum(means.get(key, 0.0) for key in saved) if means else None


def _suite_key(item: Any) -> tuple[object, ...] | None:
    """Return what the items of one suite have in common, whatever their parameters; None for other tests."""
    group, row = getattr(item, "group", None), getattr(item, "row", None)
    if not isinstance(group, Group) or row is None or row.problem is not None:
        return None
    return (group.file, group.around)


def _rule(found: Mapping[str, Any]) -> PassRule | None:
    """Return the rule of a case by its item: the row may have a threshold of its own."""
    items = (one for one in found.values() if not isinstance(one, EvalOutcome))
    return next((one.row.rule(one.group.described.settings.rule) for one in items), None)


def _has_wide_parameters(item: Any) -> bool:
    """Tell whether a fixture with a wide scope has parameters: pytest would set it up for every case again."""
    scopes = getattr(getattr(item, "callspec", None), "_arg2scope", {}).values()
    return any(scope.value != "function" for scope in scopes)


def _same_content(before: EvalOutcome, item: Any) -> bool:
    now = (clean_text(item.row.shown_input), item.row.expected)
    return fingerprint(before.input, before.expected) == fingerprint(*now)


def _other_than_baseline(name: str) -> str:
    return f"[{name}]" if name == BASELINE else name


def _shown(group: Group) -> str:
    """Return the name of a subject in reports: its suite with its parameters."""
    return f"{group.suite}[{group.parameters}]" if group.parameters else group.suite


def _earlier(outcome: EvalOutcome) -> Round:
    return _LOST if outcome.score is None else Round(Verdict.RECORDED, outcome.score, failed=False)
