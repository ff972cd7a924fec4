"""The gate against an earlier run: no suite may have got significantly worse."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from bakeoff._kernel.model import fingerprint
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.numbers import SuiteName, cell_of, suite_of
from bakeoff.doors.pytest_plugin.reporting.shape import GateResult
from bakeoff.doors.pytest_plugin.reporting.source import case_ids
from bakeoff.report.words import visible
from bakeoff.stats import CaseKey, Cells, Comparison, GateVerdict, Losses, Ruling, compare, judge_all

_MOST_NAMED = 5
Found = TypeVar("Found")


def judge_baseline(option: str, before: Sequence[EvalOutcome], after: Sequence[EvalOutcome]) -> GateResult:
    """Suite by suite, case by case; Holm keeps several suites from finding a regression by chance."""
    was, now = _by_suite(before), _by_suite(after)
    common = [name for name in now if name in was]
    compared = {str(name): compare(_cells(was[name]), _cells(now[name])) for name in common}
    losses = {str(name): (_losses(was[name]), _losses(now[name])) for name in common}
    rulings = judge_all(compared, losses=losses)
    met = _met([rulings[name] for name in rulings if rulings[name].refused or not _same(compared[name])], bool(rulings))
    parts = [*_told(compared, rulings), *_partners(was, now)]
    return GateResult(option=option, met=met, sentence="; ".join(parts) or "no suite is in both runs")


def _by_suite(outcomes: Iterable[EvalOutcome]) -> dict[SuiteName, list[EvalOutcome]]:
    found: dict[SuiteName, list[EvalOutcome]] = {}
    for outcome in outcomes:
        found.setdefault(suite_of(outcome), []).append(outcome)
    return found


def _cells(outcomes: Sequence[EvalOutcome]) -> Cells:
    """Cases by node id and content: an edited case is another one."""
    keyed = zip(case_ids(outcomes), outcomes, strict=True)
    return {
        CaseKey(case, fingerprint(outcome.input, outcome.expected)): cell
        for case, outcome in keyed
        if (cell := cell_of(outcome)) is not None
    }


def _losses(outcomes: Sequence[EvalOutcome]) -> Losses:
    lost = sum(outcome.score is None for outcome in outcomes)
    return Losses(trials=len(outcomes), lost=lost, to="broken scorers or infrastructure")


def _met(rulings: Sequence[Ruling], anything: bool) -> bool | None:
    """Of suites in which some score changed: what is the same case by case has not regressed."""
    verdicts = {ruling.verdict for ruling in rulings}
    if GateVerdict.REGRESSED in verdicts:
        return False
    return None if not anything or GateVerdict.UNDECIDABLE in verdicts else True


def _same(compared: Comparison) -> bool:
    return compared.paired and not compared.wins and not compared.losses


def _told(compared: Mapping[str, Comparison], rulings: Mapping[str, Ruling]) -> Iterator[str]:
    """What regressed first."""
    order = sorted(rulings, key=lambda name: list(_ORDER).index(rulings[name].verdict))
    for name in order[:_MOST_NAMED]:
        yield f"{visible(name, 80)}: {_sentence(compared[name], rulings[name])}"
    if len(order) > _MOST_NAMED:
        yield f"and {len(order) - _MOST_NAMED} more suites"


_ORDER = (GateVerdict.REGRESSED, GateVerdict.UNDECIDABLE, GateVerdict.EQUIVALENT, GateVerdict.IMPROVED)


def _sentence(compared: Comparison, ruling: Ruling) -> str:
    pairs = f"{compared.cases} pairs of cases" if compared.paired else "no case in common"
    changed = f", {len(compared.changed)} with changed content" if compared.changed else ""
    if _same(compared) and not ruling.refused:
        return f"the same scores in {pairs}{changed}"
    counts = f", {compared.losses} worse and {compared.wins} better" if compared.paired else ""
    return f"{ruling.sentence} ({pairs}{counts}{changed})"


def _partners(was: Mapping[SuiteName, Found], now: Mapping[SuiteName, Found]) -> Iterator[str]:
    """Suites that only one run has."""
    for words, names in (
        ("only in the baseline", [name for name in was if name not in now]),
        ("not in the baseline", [name for name in now if name not in was]),
    ):
        if names:
            shown = ", ".join(visible(str(name), 80) for name in names[:_MOST_NAMED])
            yield f"{len(names)} suites {words}: {shown}{', …' if len(names) > _MOST_NAMED else ''}"
