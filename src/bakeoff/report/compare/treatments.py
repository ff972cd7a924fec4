"""Compare each treatment with no treatment, in pairs: does it help, where does it hurt, and were its files opened?"""

from collections.abc import Callable, Mapping

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff.plan import Plan
from bakeoff.report.blocks import Column, Datum, Phrase, Quote, Section, Table, Value
from bakeoff.report.formatting import UNKNOWN
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.stats.cells import CaseKey, Cell
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.differences import UNCHANGED
from bakeoff.stats.intervals import ALPHA

_MAX_NAMED = 12


class Effect(FrozenModel):
    """One treatment of one subject, against the same subject without it."""

    subject: str  # without the treatment
    treatment: str
    comparison: Comparison
    p_value: float | None  # times the number of treatments that are compared
    helped: tuple[str, ...]  # cases that score higher with the treatment
    hurt: tuple[str, ...]
    opened: int | None  # trials in which the subject opened a file of the treatment; None where that is not known
    watched: int  # trials in which it would have been noticed

    @property
    def verdict(self) -> str:
        if self.comparison.difference is None or self.p_value is None:
            return "nothing to compare"
        if self.p_value > ALPHA:
            return "no effect shown"
        return "helps" if self.comparison.difference > 0 else "hurts"


def treatment_effects(
    plan: Plan, summary: Summary, cells_of: Callable[[str], Mapping[str, Cell]]
) -> tuple[Effect, ...]:
    """Compare every treated subject with its base. All comparisons of a run together are wrong in 5 % of runs."""
    treated = [spec for spec in plan.subjects if spec.base is not None]
    numbers = {one.subject: one for one in summary.subjects}
    made = []
    for spec in treated:
        base = str(spec.base)
        before, after = ({CaseKey(case): cell for case, cell in cells_of(name).items()} for name in (base, spec.name))
        found = compare(before, after, level=ALPHA / len(treated), seed=plan.seed)
        changes = {key.id: after[key].mean - cell.mean for key, cell in before.items() if key in after}
        made.append(
            Effect(
                subject=base,
                treatment=spec.treatment,
                comparison=found,
                p_value=None if found.p_value is None else min(1.0, found.p_value * len(treated)),
                helped=tuple(case for case, change in changes.items() if change > UNCHANGED),
                hurt=tuple(case for case, change in changes.items() if change < -UNCHANGED),
                **_opened(numbers.get(spec.name)),
            )
        )
    return tuple(made)


def _opened(summary: SubjectSummary | None) -> dict[str, int | None]:
    if summary is None or not summary.watched:
        return {"opened": None, "watched": 0}
    return {"opened": summary.opened, "watched": summary.watched}


def treatment_section(effects: tuple[Effect, ...]) -> Section | None:
    """Describe the effects; None if the run has no treatments."""
    if not effects:
        return None
    level = f"{100 * (1 - effects[0].comparison.level):.4g} %"
    titles = (
        Column("Treatment"),
        Column("Effect"),
        Column("Without", align="end", help="the score without the treatment, over the cases that both have"),
        Column("With", align="end"),
        Column("Difference", align="end", short="Diff.", help="with minus without, in points"),
        Column(f"{level} interval", align="end", short=f"{level}\ninterval", help="of the difference, in points"),
        Column("Opened", align="end", help="trials in which the agent opened a file of the treatment"),
        Column("Helped", help="cases that score higher with the treatment"),
        Column("Hurt", help="cases that score lower with the treatment"),
    )
    table = Table(titles, tuple(map(_row, effects)), "Each treatment against none, in pairs", tuple(_notes(effects)))
    return Section("treatments", "Treatments", (table,))


def _row(effect: Effect) -> tuple[Value, ...]:
    found = effect.comparison
    verdict = effect.verdict
    bounds = found.interval
    tone = {"helps": "pass", "hurts": "fail"}.get(verdict, "muted")
    opened = UNKNOWN if effect.opened is None else f"{effect.opened} of {effect.watched}"
    return (
        Datum((Quote(effect.treatment), " for ", Quote(effect.subject)), tone="strong"),
        Datum(verdict, sort=verdict, tone=tone),  # type: ignore[arg-type]  # the tones above
        _share(found.baseline),
        _share(found.candidate),
        Datum(_points(found.difference), sort=found.difference),
        Datum(f"{_points(bounds.low)} to {_points(bounds.high)}" if bounds else "undefined"),
        Datum(opened, sort=effect.opened),
        _named(effect.helped),
        _named(effect.hurt),
    )


def _share(score: float | None) -> Datum:
    return Datum(UNKNOWN if score is None else f"{100 * score:.1f} %", sort=score)


def _points(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:+.1f}"


def _named(cases: tuple[str, ...]) -> Datum:
    names: Phrase = ", ".join(visible(case, 60) for case in cases[:_MAX_NAMED])
    more = f" and {len(cases) - _MAX_NAMED} more" if len(cases) > _MAX_NAMED else ""
    return Datum(f"{len(cases)}: {names}{more}" if cases else "none", sort=len(cases))


def _notes(effects: tuple[Effect, ...]) -> list[Phrase]:
    notes: list[Phrase] = [
        "Each pair is one case with and without the treatment; everything else is the same. Helped and hurt are the "
        "cases whose score changed, which may be chance: more --rounds tell."
    ]
    if len(effects) > 1:
        notes.append(f"Intervals and verdicts are adjusted for {len(effects)} comparisons (Bonferroni).")
    if any(effect.opened is not None for effect in effects):
        notes.append("Opened: the file system noted that a file of the treatment was read while the agent worked.")
    unread = [effect for effect in effects if effect.opened == 0 and effect.watched]
    notes += [
        (Quote(one.subject), " never opened a file of ", Quote(one.treatment), ": beyond their names, it is chance.")
        for one in unread[:_MAX_NAMED]
    ]
    return notes
