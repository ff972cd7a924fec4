"""Compare parts of one run: treatments with no treatment, subjects in pairs, and cases by tag.

treatment_effects     each treatment against none, in pairs: does it help, where does it hurt, were its files opened
describe_comparisons  the pairs of a run that ends when they are decided: verdicts, intervals and savings
tag_section           the scores of each subject over the cases of each tag
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import part_of, visible
from bakeoff.plan import CLUSTER_TAG, PROMPT_TAG, Case, Plan
from bakeoff.report.blocks import Column, Datum, Phrase, Quote, Section, Table, Value, columns
from bakeoff.report.formatting import NO_INTERVAL, UNKNOWN, cost, percent, points, points_range, sentence, span
from bakeoff.report.scores import interval_datum
from bakeoff.report.summary import Comparisons, Summary
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.differences import UNCHANGED
from bakeoff.stats.intervals import ALPHA, TOO_SMALL, Interval, score_interval
from bakeoff.stats.sequential import PairDecision, SequentialDecision

CellsOf = Callable[[str], Mapping[str, Cell]]
"""A function that returns a subject's cells by case."""

_MAX_NAMED = 12


class Effect(FrozenModel):
    """One treatment of one subject, against the same subject without it."""

    subject: str  # without the treatment
    treatment: str
    comparison: Comparison
    p_value: float | None  # times the number of treatments that are compared
    helped: tuple[str, ...]  # cases that score higher with the treatment
    hurt: tuple[str, ...]
    opened: int | None  # trials in which the subject opened a file of the treatment; None if unknown
    watched: int  # trials in which an opened file would have been noticed

    @property
    def verdict(self) -> str:
        """Return the effect in words: a difference counts if its adjusted p-value is at most 5 %."""
        if self.comparison.difference is None or self.p_value is None:
            return "nothing to compare"
        if self.p_value > ALPHA:
            return "no effect shown"
        return "helps" if self.comparison.difference > 0 else "hurts"


def by_key(cells: Mapping[str, Cell]) -> Cells:
    """Return the scores of one run under the keys of comparisons: here, the case ids alone."""
    return {CaseKey(case): cell for case, cell in cells.items()}


def compare_subjects(cells_of: CellsOf, before: str, after: str, *, level: float = ALPHA, seed: int = 0) -> Comparison:
    """Compare two subjects of one run case by case; the interval has the confidence 1 − `level`."""
    return compare(by_key(cells_of(before)), by_key(cells_of(after)), level=level, seed=seed)


def treatment_effects(plan: Plan, summary: Summary, cells_of: CellsOf) -> tuple[Effect, ...]:
    """Compare every treated subject with its base, at an error rate of 5 % for all together."""
    specs = [spec for spec in plan.subjects if spec.base is not None]
    numbers = {one.subject: one for one in summary.subjects}
    made = []
    for spec in specs:
        base, treated = str(spec.base), numbers.get(spec.name)
        before, after = cells_of(base), cells_of(spec.name)
        found = compare_subjects(cells_of, base, spec.name, level=ALPHA / len(specs), seed=plan.seed)
        changes = {case: after[case].mean - cell.mean for case, cell in before.items() if case in after}
        made.append(
            Effect(
                subject=base,
                treatment=spec.treatment,
                comparison=found,
                p_value=None if found.p_value is None else min(1.0, found.p_value * len(specs)),
                helped=tuple(case for case, change in changes.items() if change > UNCHANGED),
                hurt=tuple(case for case, change in changes.items() if change < -UNCHANGED),
                opened=treated.opened if treated and treated.watched else None,
                watched=treated.watched if treated else 0,
            )
        )
    return tuple(made)


def treatment_section(effects: tuple[Effect, ...]) -> Section | None:
    """Describe the effects; None if the run has no treatments."""
    if not effects:
        return None
    level = f"{100 * (1 - effects[0].comparison.level):.4g} %"
    titles = (
        *columns("Treatment", "Effect"),
        Column("Without", align="end", help="the score without the treatment, over the cases that both have"),
        Column("With", align="end"),
        Column("Difference", align="end", short="Diff.", help="with minus without, in points"),
        Column(f"{level} interval", align="end", short=f"{level}\ninterval", help="of the difference, in points"),
        Column("Opened", align="end", help="trials in which the agent opened a file of the treatment"),
        Column("Helped", help="cases that score higher with the treatment"),
        Column("Hurt", help="cases that score lower with the treatment"),
    )
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
    table = Table(titles, tuple(map(_row, effects)), "Each treatment against none, in pairs", tuple(notes))
    return Section("treatments", "Treatments", (table,))


def _row(effect: Effect) -> tuple[Value, ...]:
    found = effect.comparison
    verdict = effect.verdict
    tone = {"helps": "pass", "hurts": "fail"}.get(verdict, "muted")
    opened = UNKNOWN if effect.opened is None else f"{effect.opened} of {effect.watched}"
    return (
        Datum((Quote(effect.treatment), " for ", Quote(effect.subject)), tone="strong"),
        Datum(verdict, sort=verdict, tone=tone),  # type: ignore[arg-type]  # the tones above
        *(Datum(percent(score), sort=score) for score in (found.baseline, found.candidate)),
        Datum(points(found.difference), sort=found.difference),
        Datum(points_range(found.interval)),
        Datum(opened, sort=effect.opened),
        _named(effect.helped),
        _named(effect.hurt),
    )


def _named(cases: tuple[str, ...]) -> Datum:
    names: Phrase = ", ".join(visible(case, 60) for case in cases[:_MAX_NAMED])
    more = f" and {len(cases) - _MAX_NAMED} more" if len(cases) > _MAX_NAMED else ""
    return Datum(f"{len(cases)}: {names}{more}" if cases else "none", sort=len(cases))


STOPPED_NOTE = (
    "The intervals of single scores assume that the number of cases was fixed in advance. This run ends when its "
    "comparisons are decided, so they promise less than 95 %: compare subjects by the anytime-valid intervals."
)


def describe_comparisons(compared: Comparisons) -> Section:
    """Return the verdict and the anytime-valid interval of every pair."""
    level = f"{100 * (1 - compared.alpha):g} %"
    about = "the subject that is named first minus the other, in points"
    titles = (
        Column("Verdict"),
        Column("Difference", align="end", short="Diff.", help=about),
        Column(f"{level} interval", align="end", short=f"{level}\ninterval", help="anytime-valid, in points"),
        Column("Cases", align="end", help="compared, in the random order of the plan's seed"),
    )
    rows = tuple(map(_decision_row, compared.pairs))
    table = Table(titles, rows, "Subjects in pairs, compared after every case", tuple(_decision_notes(compared)))
    return Section("comparisons", "Comparisons", (table,))


def _decision_row(pair: PairDecision) -> tuple[Value, ...]:
    improved, regressed = SequentialDecision.IMPROVED, SequentialDecision.REGRESSED
    turned = pair.decision is improved or ((pair.difference or 0.0) > 0 and pair.decision is not regressed)
    first, second = (pair.second, pair.first) if turned else (pair.first, pair.second)
    sign = 1 if turned else -1  # the difference of a pair is its second subject minus its first
    bounds = sorted((sign * pair.interval.low, sign * pair.interval.high)) if pair.interval else None
    difference = None if pair.difference is None else sign * pair.difference
    return (
        _decision(pair.decision, Quote(first), Quote(second)),
        Datum(points(difference), sort=difference),
        Datum(
            f"{points(bounds[0])} to {points(bounds[1])}" if bounds else NO_INTERVAL,
            sort=bounds[0] if bounds else None,
            note=pair.interval.method if pair.interval else "no case was compared",
        ),
        pair.cases,
    )


def _decision(decision: SequentialDecision, first: Quote, second: Quote) -> Datum:
    if decision is SequentialDecision.UNDECIDED:
        return Datum(("undecided: ", first, " and ", second), sort=decision, tone="muted")
    if decision is SequentialDecision.EQUIVALENT:
        return Datum((first, " and ", second, " are equivalent"), sort=decision, tone="strong")
    return Datum((first, " is better than ", second), sort=decision, tone="strong")


def _decision_notes(compared: Comparisons) -> Iterator[Phrase]:
    open_pairs = sum(pair.decision is SequentialDecision.UNDECIDED for pair in compared.pairs)
    count = len(compared.pairs)
    if not open_pairs:
        yield "Decided." if count == 1 else f"All {count} pairs are decided."
    else:
        why = "the run is not finished" if compared.trials_left else "all cases were tried"
        yield f"{'Not decided' if count == 1 else f'Not decided: {open_pairs} of {count} pairs'}; {why}."
    yield _saved(compared)
    if compared.margin is not None:
        yield f"Equivalent: the interval lies within ±{100 * compared.margin:g} points."
    every = "" if count == 1 else f", all {count} pairs together"
    yield (
        "Differences are the subject that is named first minus the other, in points. Their intervals are "
        "anytime-valid: looking after every case and stopping because of what was seen do not make them wrong in more "
        f"than {100 * compared.alpha:g} % of runs{every}."
    )
    for reason in sorted({pair.refused for pair in compared.pairs if pair.refused is not None}):
        yield sentence(reason)


def _saved(compared: Comparisons) -> str:
    if not compared.trials_saved:
        return "No trial was saved."
    share = percent(compared.trials_saved / compared.trials_planned)
    money = "" if compared.cost_saved is None else f", which saved about {cost(compared.cost_saved)}"
    saved = part_of(compared.trials_saved, compared.trials_planned, "trial")
    return f"{saved} ({share}) {'was' if compared.trials_saved == 1 else 'were'} not needed{money}."


_NUMBERED = re.compile(r"tag \d+")  # the key of a tag that is only a word
_MAX_TAGS = 100
_MAX_SUBJECTS = 8


class TagScore(FrozenModel):
    """The score of one subject over the cases that have one tag."""

    tag: str
    subject: str
    cases: int  # with a score
    score: float | None
    interval: Interval | None

    def values(self) -> tuple[Datum, Datum]:
        """Return the score and its interval as a table shows them."""
        interval = interval_datum(self.score, self.interval) if self.interval else Datum(UNKNOWN, note=span(None))
        return Datum(percent(self.score), sort=self.score, tone="strong"), interval


def score_groups(groups: Mapping[str, Sequence[str]], cells_of: CellsOf, subjects: Sequence[str]) -> list[TagScore]:
    """Score each subject over each group of cases; `groups` has the ids of the cases of each tag."""
    cells = {subject: cells_of(subject) for subject in subjects} if groups else {}
    made = []
    for group, cases in groups.items():
        for subject, own in cells.items():
            found = [own[case] for case in cases if case in own]
            mean = fmean(cell.mean for cell in found) if found else None
            interval = score_interval(found)
            made.append(TagScore(tag=group, subject=subject, cases=len(found), score=mean, interval=interval))
    return made


def label_of(key: str, value: str) -> str:
    """Return a tag as it is shown: `language=python`, or the word alone if the tag has no key of its own."""
    return value if _NUMBERED.fullmatch(key) else f"{key}={value}"


def tags_of(case: Case) -> list[str]:
    """Return the tags of a case as they are shown, clusters included."""
    return [label_of(key, value) for key, value in case.tags.items()]


def useful_tags(plan: Plan) -> dict[str, list[str]]:
    """Return the cases of each informative tag: one that several cases have, but not all."""
    found: dict[str, list[str]] = {}
    for case in plan.cases:
        # A cluster says which cases belong together, and not what they are about.
        for tag in dict.fromkeys(label_of(key, value) for key, value in case.tags.items() if key != CLUSTER_TAG):
            found.setdefault(tag, []).append(case.id)
    return {tag: cases for tag, cases in sorted(found.items()) if 1 < len(cases) < len(plan.cases)}


def scores_by_tag(plan: Plan, cells_of: CellsOf, subjects: Sequence[str]) -> list[TagScore]:
    """Score each subject over the cases of each useful tag, but not of prompts, which have a section of their own."""
    prompts = {label_of(PROMPT_TAG, case.tags[PROMPT_TAG]) for case in plan.cases if case.name != case.id}
    groups = [(tag, cases) for tag, cases in useful_tags(plan).items() if tag not in prompts]
    return score_groups(dict(groups[:_MAX_TAGS]), cells_of, subjects)


def tag_section(plan: Plan, cells_of: CellsOf, subjects: Sequence[str]) -> Section | None:
    """Describe the scores by tag; None if no tag is informative."""
    shown = subjects[:_MAX_SUBJECTS]
    scores = scores_by_tag(plan, cells_of, shown)
    if not scores:
        return None
    rows: dict[str, list[TagScore]] = {}
    for one in scores:
        rows.setdefault(one.tag, []).append(one)
    single = len(shown) == 1
    titles = [*columns("Tag", "Cases>")]
    for subject in shown:
        score = Column("Score" if single else subject, align="end", help="the mean over the cases with this tag")
        titles += (score, Column("95 % interval", align="end", short="95 %\ninterval", drop=2))
    cells: list[tuple[Value, ...]] = []
    for tag, row in rows.items():
        cells.append((Quote(tag), max(one.cases for one in row), *(value for one in row for value in one.values())))
    table = Table(tuple(titles), tuple(cells), "Score by tag, with its interval")
    lead = "Intervals are not adjusted for the number of tags: one of twenty misses by chance."
    if few := sorted({one.tag for one in scores if one.interval and not one.interval.promised}):
        which = "all" if len(few) == len(rows) else f"{len(few):,} of {len(rows):,}"
        lead += f" Those of {which} tags have {TOO_SMALL}."
    if len(subjects) > len(shown):
        lead += f" The first {len(shown):,} of {len(subjects):,} subjects are shown."
    return Section("tags", "Tags", (table,), lead)
