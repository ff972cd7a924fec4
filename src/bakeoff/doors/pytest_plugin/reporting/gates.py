"""Gates on a whole run: a least pass rate, a least score, and no significant regression against an earlier run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.numbers import Numbers, SuiteName, cell_of, suite_of
from bakeoff.doors.pytest_plugin.reporting.shape import GateResult
from bakeoff.doors.pytest_plugin.reporting.source import case_ids
from bakeoff.frozen import fingerprint
from bakeoff.report.words import percent, visible
from bakeoff.stats import CaseKey, Cells, Comparison, GateVerdict, Losses, Ruling, compare, judge_all

_MOST_NAMED = 5
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Gates:
    """What was asked for. `baseline` are the outcomes of an earlier run."""

    min_pass_rate: float | None = None
    min_score: float | None = None
    baseline: Sequence[EvalOutcome] | None = None
    prefix: str = "--eval-"

    def __bool__(self) -> bool:
        return not (self.min_pass_rate is None and self.min_score is None and self.baseline is None)


NO_GATES = Gates()


def judge_gates(gates: Gates, outcomes: Sequence[EvalOutcome], numbers: Numbers) -> tuple[GateResult, ...]:
    """What each gate says. Where no eval was run, none can be met: a typing error must not look like success."""
    if not numbers.cases:
        return tuple(GateResult(option=name, met=False, sentence="no eval was run") for name, _ in _asked(gates))
    found = []
    if gates.min_pass_rate is not None:
        found.append(_pass_rate(f"{gates.prefix}min-pass-rate", gates.min_pass_rate, numbers))
    if gates.min_score is not None:
        found.append(_min_score(f"{gates.prefix}min-score", gates.min_score, numbers))
    if gates.baseline is not None:
        found.append(_baseline(f"{gates.prefix}baseline", gates.baseline, outcomes))
    return tuple(found)


def _asked(gates: Gates) -> Iterator[tuple[str, object]]:
    for name in ("min_pass_rate", "min_score", "baseline"):
        if (value := getattr(gates, name)) is not None:
            yield gates.prefix + name.replace("_", "-"), value


def _pass_rate(option: str, wanted: float, numbers: Numbers) -> GateResult:
    if numbers.pass_rate is None:
        return GateResult(option=option, met=False, sentence="no case has a threshold, so that none passed or failed")
    sentence = (
        f"{numbers.passed:,} of {numbers.judged:,} passed ({percent(numbers.pass_rate)}), wanted {percent(wanted)}"
    )
    if numbers.undecided:
        sentence += f"; {numbers.undecided:,} could not be judged"
    return GateResult(option=option, met=numbers.pass_rate >= wanted, sentence=sentence)


def _min_score(option: str, wanted: float, numbers: Numbers) -> GateResult:
    if numbers.score is None:
        return GateResult(option=option, met=False, sentence="no case has a score")
    sentence = f"mean score {numbers.score:.3f} over {numbers.scored:,} cases, wanted {wanted:g}"
    left_out = numbers.cases - numbers.scored
    if left_out:
        sentence += f"; {left_out:,} without a score"
    return GateResult(option=option, met=numbers.score >= wanted, sentence=sentence)


def _baseline(option: str, before: Sequence[EvalOutcome], after: Sequence[EvalOutcome]) -> GateResult:
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
