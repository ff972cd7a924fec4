"""Skip evals that can no longer decide anything: order cases at random, follow their results, skip the rest.

The parameter sets of a suite are compared with each other or, with a baseline, each with the same
suite in that file. Only `--eval-until-decided` loads this module.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bakeoff._kernel.json import clean_text
from bakeoff._kernel.model import fingerprint
from bakeoff.doors.pytest.groups import Group
from bakeoff.doors.pytest.options import rounds_of
from bakeoff.doors.pytest.parallel import EMPTY_PLAN
from bakeoff.plan import Case, SubjectSpec, UntilDecided
from bakeoff.report.compare.until_decided import FollowedComparisons, random_ranks
from bakeoff.report.suites.gates import SuiteGates
from bakeoff.report.suites.outcomes import EvalOutcome, subject_name

BASELINE = "baseline"


def register(config: pytest.Config, baseline: Sequence[EvalOutcome] | None) -> None:
    """Add the hooks of a session that ends when its evals are decided."""
    if config.getoption("numprocesses", None):
        raise pytest.UsageError(
            "--eval-until-decided does not work with xdist (-n): its workers do not know each other's results; "
            "leave one of them out (cases of a suite run side by side anyway)"
        )
    config.pluginmanager.register(SessionDecisions(config, baseline), "bakeoff-until-decided")


_Suite = dict[Group, dict[str, Any]]
"""The items of one suite, by its sets of parameters and by case."""


class SessionDecisions:
    """The comparisons of one session, and pytest's hooks that keep them up to date."""

    def __init__(self, config: pytest.Config, baseline: Sequence[EvalOutcome] | None) -> None:
        self._config = config
        self._before = None if baseline is None else {outcome.nodeid: outcome for outcome in baseline}
        self.settings = UntilDecided.in_new_order(config.getoption("eval_margin") or None)
        self.followed = FollowedComparisons(self.settings.margin)  # trials by node id
        self.not_needed: set[str] = set()  # node ids, as outcomes have them

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find the suites to compare with each other, and put the cases of each into random order."""
        suites: dict[tuple[object, ...], _Suite] = {}
        for item in items:
            if (key := _suite_key(item)) is not None:
                one: Any = item
                cases = suites.setdefault(key, {}).setdefault(one.group, {})
                cases[one.group.case_id(one.row)] = one
        drafts = [draft for suite in suites.values() for draft in self._drafts(suite)]
        pairs = sum(len(subjects) * (len(subjects) - 1) // 2 for subjects, _ in drafts)
        for subjects, cases in drafts:
            self._compare(subjects, cases, pairs)
        ordered: list[pytest.Item] = []
        for item in items:
            key = _suite_key(item)
            if key is None:
                ordered.append(item)
            elif suite := suites[key]:
                ordered += self._suite_order(suite)
                suite.clear()
        items[:] = ordered

    def _drafts(self, suite: _Suite) -> Iterator[tuple[dict[str, Group | None], dict[str, dict[str, Any]]]]:
        """Yield the subjects of each comparison, with their items or earlier outcomes by case."""
        named = {subject_name(group.parameters): group for group in suite}
        if self._before is not None:
            for name, group in named.items():
                cases = {
                    case: {BASELINE: before, _other_than_baseline(name): item}
                    for case, item in suite[group].items()
                    if (before := self._before.get(clean_text(item.nodeid)))
                    and fingerprint(before.input, before.expected)
                    == fingerprint(clean_text(item.row.shown_input), item.row.expected)
                }
                if cases:
                    yield {BASELINE: None, _other_than_baseline(name): group}, cases
        elif len(named) > 1:
            common = set.intersection(*(set(suite[group]) for group in named.values()))
            first = next(iter(named.values()))
            cases = {
                case: {name: suite[group][case] for name, group in named.items()}
                for case in suite[first]
                if case in common
            }
            if cases:
                yield dict(named), cases

    def _compare(
        self, subjects: Mapping[str, Group | None], cases: Mapping[str, Mapping[str, Any]], pairs: int
    ) -> None:
        """Start one comparison. Its share of the error rate is its share of the pairs."""
        group = next(group for group in subjects.values() if group is not None)
        settings, own = group.described.settings, len(subjects) * (len(subjects) - 1) // 2
        items = {
            case: next(one for one in found.values() if not isinstance(one, EvalOutcome))
            for case, found in cases.items()
        }
        plan = EMPTY_PLAN.with_changes(
            cases=tuple(Case(id=case, prompt="", pass_rule=one.row.rule(settings.rule)) for case, one in items.items()),
            subjects=tuple(SubjectSpec(kind="eval", name=name) for name in subjects),
            rounds=rounds_of(self._config, settings),
            until_decided=self.settings.model_copy(update={"alpha": self.followed.alpha * own / pairs}),
        )
        names = {name: BASELINE if one is None else _shown(one) for name, one in subjects.items()}
        suite = None if self._before is None else clean_text(f"{group.location[0]}::{_shown(group)}")
        made = self.followed.compare(plan, names, suite)
        for case, found in cases.items():
            for name, one in found.items():
                if isinstance(one, EvalOutcome):
                    made.add_earlier(name, case, one.score)
                else:
                    self.followed.follow(one.nodeid, made, name, case)

    def _suite_order(self, suite: _Suite) -> list[Any]:
        """Return the cases of a suite in random order, the subjects of a case next to each other."""
        every = [(case, place, item) for place, found in enumerate(suite.values()) for case, item in found.items()]
        names = dict.fromkeys(case for case, _, _ in every)
        cases = tuple(Case(id=name, prompt="") for name in names)
        rank = random_ranks(EMPTY_PLAN.with_changes(cases=cases, until_decided=self.settings))
        scopes = (getattr(getattr(item, "callspec", None), "_arg2scope", {}).values() for _, _, item in every)
        # pytest would set up a fixture with parameters and a wide scope for every case again.
        apart = any(scope.value != "function" for found in scopes for scope in found)

        def key(entry: tuple[str, int, Any]) -> tuple[int, ...]:
            case, place, item = entry
            alone = not self.followed.follows(item.nodeid)  # it decides nothing, and is run in any case
            return (alone, place, rank[case]) if apart else (alone, rank[case], place)

        return [item for _, _, item in sorted(every, key=key)]

    def needs(self, item: Any) -> bool:
        """Tell whether an item must be run: it can still change a decision, or belongs to no comparison."""
        return self.followed.needs(item.nodeid)

    def save(self, nodeid: str) -> None:
        """Mark a case as not needed, so that it is not run."""
        self.followed.save(nodeid)
        self.not_needed.add(clean_text(nodeid))

    def for_gates(self, gates: SuiteGates) -> SuiteGates:
        """Return the gates with the decisions so far, and the cases that were not needed."""
        return replace(gates, decided=self.followed.against_baseline(), not_needed=self.not_needed)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Count a case without a result, such as a skipped one, as lost: others may wait for it."""
        self.followed.add_lost(nodeid)


def _suite_key(item: Any) -> tuple[object, ...] | None:
    """Return a key that all items of one suite share, whatever their parameters; None for other tests."""
    group, row = getattr(item, "group", None), getattr(item, "row", None)
    if not isinstance(group, Group) or row is None or row.problem is not None:
        return None
    return (group.file, group.around)


def _other_than_baseline(name: str) -> str:
    return f"[{name}]" if name == BASELINE else name


def _shown(group: Group) -> str:
    """Return the name of a subject in reports: its suite with its parameters."""
    return f"{group.suite}[{group.parameters}]" if group.parameters else group.suite
