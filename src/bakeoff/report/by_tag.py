"""Break the scores of a run down by the tags of its cases."""

import re
from collections.abc import Callable, Mapping, Sequence

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import Case, Plan
from bakeoff.report.blocks import Column, Datum, Quote, Section, Table, Value
from bakeoff.report.formatting import UNKNOWN, percent, span
from bakeoff.report.scores import interval_datum
from bakeoff.stats.cells import CLUSTER_TAG, Cell
from bakeoff.stats.intervals import TOO_SMALL, Interval, score_interval

_NUMBERED = re.compile(r"tag \d+")  # the key of a tag that is only a word
_MAX_TAGS = 100
_MAX_SUBJECTS = 8


class TagScore(FrozenModel):
    """The score of one subject over the cases with one tag."""

    tag: str
    subject: str
    cases: int  # with a score
    score: float | None
    interval: Interval | None


def label_of(key: str, value: str) -> str:
    """Return a tag as it is shown: `language=python`, or only the word where it has no name."""
    return value if _NUMBERED.fullmatch(key) else f"{key}={value}"


def tags_of(case: Case) -> list[str]:
    return [label_of(key, value) for key, value in case.tags.items()]


def useful_tags(plan: Plan) -> dict[str, list[str]]:
    """Return the cases of each tag that says something: not one of a single case, nor one that every case has."""
    found: dict[str, list[str]] = {}
    for case in plan.cases:
        # A cluster says which cases belong together, and not what they are about.
        for tag in dict.fromkeys(label_of(key, value) for key, value in case.tags.items() if key != CLUSTER_TAG):
            found.setdefault(tag, []).append(case.id)
    return {tag: cases for tag, cases in sorted(found.items()) if 1 < len(cases) < len(plan.cases)}


def scores_by_tag(plan: Plan, cells_of: Callable[[str], Mapping[str, Cell]], subjects: Sequence[str]) -> list[TagScore]:
    """Score each subject over the cases of each useful tag."""
    tags = dict(list(useful_tags(plan).items())[:_MAX_TAGS])
    cells = {subject: cells_of(subject) for subject in subjects} if tags else {}
    return [_score(tag, subject, cells[subject], cases) for tag, cases in tags.items() for subject in subjects]


def _score(tag: str, subject: str, cells: Mapping[str, Cell], cases: Sequence[str]) -> TagScore:
    found = [cells[case] for case in cases if case in cells]
    mean = sum(cell.mean for cell in found) / len(found) if found else None
    return TagScore(tag=tag, subject=subject, cases=len(found), score=mean, interval=score_interval(found))


def tag_section(plan: Plan, cells_of: Callable[[str], Mapping[str, Cell]], subjects: Sequence[str]) -> Section | None:
    """Describe the scores by tag; None if no tag says anything."""
    shown = subjects[:_MAX_SUBJECTS]
    scores = scores_by_tag(plan, cells_of, shown)
    if not scores:
        return None
    rows: dict[str, list[TagScore]] = {}
    for one in scores:
        rows.setdefault(one.tag, []).append(one)
    single = len(shown) == 1
    titles = (
        Column("Tag"),
        Column("Cases", align="end"),
        *(
            column
            for subject in shown
            for column in (
                Column("Score" if single else subject, align="end", help="the mean over the cases with this tag"),
                Column("95 % interval", align="end", short="95 %\ninterval", drop=2),
            )
        ),
    )
    table = Table(titles, tuple(_row(tag, row) for tag, row in rows.items()), "Score by tag, with its interval")
    lead = "Intervals are not adjusted for the number of tags: one of twenty misses by chance."
    if few := sorted({one.tag for one in scores if one.interval and not one.interval.promised}):
        which = "all" if len(few) == len(rows) else f"{len(few):,} of {len(rows):,}"
        lead += f" Those of {which} tags are {TOO_SMALL}."
    if len(subjects) > len(shown):
        lead += f" The first {len(shown):,} of {len(subjects):,} subjects are shown."
    return Section("tags", "Tags", (table,), lead)


def _row(tag: str, scores: Sequence[TagScore]) -> tuple[Value, ...]:
    cells: list[Value] = []
    for one in scores:
        cells += [Datum(percent(one.score), sort=one.score, tone="strong"), _interval(one)]
    return (Quote(tag), max(one.cases for one in scores), *cells)


def _interval(one: TagScore) -> Datum:
    return interval_datum(one.score, one.interval) if one.interval else Datum(UNKNOWN, note=span(None))
