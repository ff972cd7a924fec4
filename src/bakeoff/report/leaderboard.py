"""Rank subjects over many runs: the latest result of each, with groups that cannot be told apart.

Scores on different cases are not comparable, and neither are scores by different scorers, thresholds, judges or rules
over rounds. Each set of cases, scored and judged in one way, has a board of its own.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.plan import Origin
from bakeoff.report.answer import what_was_lost_unequally
from bakeoff.report.blocks import Column, Datum, Phrase, Quote, Report, Section, Table, Value, columns, trail
from bakeoff.report.compare.arms import FileName, case_keys, countable, judged_by, labelled_judgements
from bakeoff.report.formatting import UNKNOWN, cost, percent, replay_note, sentence, span, utc
from bakeoff.report.judges.calibration import Judgements, calibrated_pairs
from bakeoff.report.readers import Source
from bakeoff.report.scores import (
    SCORE_COLUMNS,
    SHARE_COLUMNS,
    name_datum,
    proven_note,
    score_cells,
    share_cells,
    tradeoff_plots,
)
from bakeoff.report.summary import RunTally, SubjectSummary, losses_of
from bakeoff.stats.cells import CaseKey, Cells
from bakeoff.stats.gates import UnequalLosses, unequal_losses
from bakeoff.stats.intervals import Interval
from bakeoff.stats.ranking import Standing, corrected_leaderboard, leaderboard
from bakeoff.storage.ledger import Ledger, describe
from bakeoff.verdict import Verdict

SELFCHECK = "selfcheck "
"""The prefix of the plans that `bakeoff selfcheck` runs. They test the machine as much as the subject."""

_ENOUGH = 0.95
"""The share of its trials that a run must have scored to replace an earlier run; `compare` requires the same."""


class LeaderboardEntry(FrozenModel):
    """One subject of the leaderboard."""

    board: int  # the number of its board, from 1
    standing: Standing
    summary: SubjectSummary
    model: str | None
    source: FileName  # the run that the numbers come from
    path: FileName
    threshold: float | None  # None: nothing passes or fails
    whole: bool  # the run ended, and enough of its trials were scored
    ledger: Ledger
    passed_over: int = 0  # later runs that are less complete, and so do not replace it
    ranked: bool = True  # False: it has no complete run, and others have one
    updated: float | None  # when its last trial began, in seconds since 1970
    history: tuple[float, ...]  # its scores on the same cases in all complete sources, oldest first
    cost_interval: Interval | None = None  # of the mean cost of a trial
    time_interval: Interval | None = None

    @property
    def rank(self) -> str:
        """Return the ranks that fit the data, such as `2–4`; a dash if there is no comparison."""
        best, worst = self.standing.best, self.standing.worst
        if self.standing.undefined:
            return UNKNOWN
        return str(best) if best == worst else f"{best}–{worst}"

    def is_tied_with(self, other: "LeaderboardEntry") -> bool:
        """Tell whether both entries are ranked and the data cannot tell them apart."""
        if other is self or not (self.ranked and other.ranked):
            return False
        shared = not set(self.standing.groups).isdisjoint(other.standing.groups)
        return shared or self.standing.undefined or other.standing.undefined


class Board(FrozenModel):
    """One set of cases, with a ranking of the subjects that were tried on it."""

    name: str  # of the plan of the latest run
    cases: int
    origin: str = ""  # the checkout of the cases and its commit, if known
    judged_by: dict[str, str] = {}  # scorers, threshold and rule of cases; empty if they are unknown
    corrected_by: str | None = None  # the judge whose scores are corrected by labels, for every subject that is ranked
    unequal_losses: tuple[UnequalLosses, ...] = ()  # pairs that lost unequal shares of trials, more than by chance


class Leaderboard(FrozenModel):
    """Every subject with its rank, and the subjects and sources that were left out."""

    entries: tuple[LeaderboardEntry, ...]  # of all boards; a subject has one on each board
    boards: tuple[Board, ...]  # the one with the latest run first
    left_out: tuple[str, ...]  # controls, and subjects without a scored trial
    by_id_alone: bool = False  # cases were paired by id only, because the content of a source's cases is unknown
    selfchecks: int = 0  # the number of self-check runs that were left out
    unreadable: tuple[FileName, ...] = ()  # sources that could not be read, and why

    def on_board(self, number: int) -> tuple[LeaderboardEntry, ...]:
        """Return the entries of one board, best first."""
        return tuple(entry for entry in self.entries if entry.board == number)


class NothingToRank(UsageError):
    """The error raised when no subject except controls has a scored trial."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One subject in one source."""

    source: Source
    summary: SubjectSummary
    cells: Cells
    planned: frozenset[CaseKey]  # the cases planned for the subject
    updated: float
    model: str | None
    judged_by: Mapping[str, str]
    judgements: Judgements
    spec: str  # the name of the subject in its plan

    @property
    def whole(self) -> bool:
        """Tell whether the run ended and enough of its trials were scored to represent the subject."""
        summary = self.summary
        ended = not summary.missing and not summary.verdicts.get(Verdict.BUDGET)
        return ended and summary.scored + summary.not_needed >= _ENOUGH * summary.planned

    @property
    def completeness(self) -> int:
        """Return 2 if every trial was run, 1 if few are missing or the rest was not needed, else 0.

        A result never replaces one with a higher number.
        """
        return 2 if not (self.summary.ledger.undecided or self.summary.not_needed) else int(self.whole)


def rank_sources(sources: Iterable[Source]) -> Leaderboard:
    """Rank the latest complete result of each subject, by name, without controls.

    Each set of cases has a board of its own. Raises `NothingToRank` if no other subject has a scored trial.
    """
    return _rank([found for source in sources for found in _read(source)])


def rank_results(sources: Iterable[Source]) -> Leaderboard:
    """Rank a whole results folder as `rank_sources` does, without self-checks.

    Runs that cannot be read are listed in the result instead of raising.
    """
    runs: list[_Candidate] = []
    problems: list[str] = []
    selfchecks = 0
    for source in sources:
        try:
            if source.plan.name.startswith(SELFCHECK):
                selfchecks += 1
            else:
                runs += _read(source)
        except BakeoffError as error:
            problems.append(str(error))
    return _rank(runs, tuple(problems), selfchecks)


def _read(source: Source) -> list[_Candidate]:
    with countable(source):
        return list(_subjects_of(source))


def _rank(runs: Iterable[_Candidate], unreadable: tuple[str, ...] = (), selfchecks: int = 0) -> Leaderboard:
    counted: list[_Candidate] = []
    left_out: dict[str, None] = {}
    for run in runs:
        if run.summary.control or not run.cells:
            left_out[run.summary.subject] = None
        else:
            counted.append(run)
    if not counted:
        found = f" (left out: {visible(', '.join([*left_out][:5]), 200)})" if left_out else ""
        first = f"; not read: {unreadable[0]}" if unreadable else ""
        raise NothingToRank(
            f"nothing to rank: no subject besides controls has a scored trial{found}; "
            f"`bakeoff runs list` lists all runs{first}"
        )
    boards = [_told_apart(group) for group in _comparable(counted)]
    names = {run.summary.subject for run in counted}
    ranked = [_ranked(runs, number) for number, runs in enumerate(boards, 1)]
    return Leaderboard(
        entries=tuple(entry for _, entries in ranked for entry in entries),
        boards=tuple(_board(runs[-1], *found) for runs, found in zip(boards, ranked, strict=True)),
        left_out=tuple(name for name in left_out if name not in names),
        by_id_alone=any(not run.source.description.content_known for run in counted) and len(names) > 1,
        selfchecks=selfchecks,
        unreadable=unreadable,
    )


def _told_apart(runs: Sequence[_Candidate]) -> list[_Candidate]:
    """Name logs of other tools that have the same subject apart: they are no history of it, as our runs are."""
    logs = [run for run in runs if run.source.plan.is_imported]
    subjects = Counter(run.spec for run in logs)
    files = Counter((run.spec, run.source.name) for run in logs)
    named = []
    for run in runs:
        if run.source.plan.is_imported and subjects[run.spec] > 1:
            unique = files[run.spec, run.source.name] == 1
            subject = f"{run.spec} in {run.source.name if unique else visible(str(run.source.path))}"
            run = replace(run, summary=run.summary.model_copy(update={"subject": subject}))
        named.append(run)
    return named


def _board(latest: _Candidate, corrected_by: str | None, entries: Sequence[LeaderboardEntry]) -> Board:
    plan = latest.source.plan
    return Board(
        name=plan.name,
        cases=len(latest.planned),
        origin=visible(plan.origin.label, 100),
        unequal_losses=unequal_losses(losses_of(entry.summary for entry in entries)),
        judged_by=dict(latest.judged_by),
        corrected_by=corrected_by,
    )


def _comparable(runs: Sequence[_Candidate]) -> list[list[_Candidate]]:
    """Group runs whose scores are comparable, oldest first; the group with the latest run comes first.

    Cases, scorers, thresholds, judges and rules must be the same. If only case ids are known, track
    and commit must be the same, too, and scorers are inferred from other runs on these cases.
    """
    ordered = sorted(runs, key=lambda found: found.updated)
    ways: dict[frozenset[CaseKey], set[str]] = {}
    for run in ordered:
        if run.source.description.content_known:
            ways.setdefault(run.planned, set()).add(fingerprint(run.judged_by))
    groups: dict[tuple[frozenset[CaseKey], Origin | None, str], list[_Candidate]] = {}
    for run in ordered:
        if run.source.description.content_known:
            groups.setdefault((run.planned, None, fingerprint(run.judged_by)), []).append(run)
            continue
        origin = run.source.plan.origin
        likely = _likely_contents(runs, origin)
        cases = frozenset(likely.get(key.id, key) for key in run.planned)
        cells = {likely.get(key.id, key): cell for key, cell in run.cells.items()}
        place = Origin(track=origin.track, commit=origin.commit)
        known = all(key.id in likely for key in run.planned)
        way = next(iter(ways[cases])) if len(ways.get(cases, ())) == 1 else ""
        way = fingerprint(run.judged_by) if run.judged_by else way
        key = cases, None if known else place, way
        groups.setdefault(key, []).append(replace(run, planned=cases, cells=cells))
    return sorted(groups.values(), key=lambda group: -group[-1].updated)


def _likely_contents(runs: Iterable[_Candidate], origin: Origin) -> dict[str, CaseKey]:
    """Return, for each case id, the content that most runs of the same origin have."""
    contents: dict[str, Counter[CaseKey]] = {}
    for run in runs:
        if run.source.description.content_known and origin.is_comparable(run.source.plan.origin):
            for key in run.planned:
                contents.setdefault(key.id, Counter())[key] += 1
    return {name: keys.most_common(1)[0][0] for name, keys in contents.items()}


def _standings(runs: Sequence[_Candidate]) -> tuple[str | None, tuple[Standing, ...]]:
    """Rank runs; if labels correct their only judge, use corrected scores and name the judge."""
    names = {name for run in runs for name in run.judgements.names}
    [judge] = names if len(names) == 1 else [""]
    found = {run.summary.subject: run for run in runs}
    corrected = {name: run.judgements.calibration(judge, run.spec).corrected for name, run in found.items() if judge}
    scores = {name: (one.value, one.interval) for name, one in corrected.items() if one is not None}
    if len(scores) < len(runs):
        return None, leaderboard({run.summary.subject: run.cells for run in runs})

    def compared(pair: tuple[str, str]) -> tuple[float, float] | None:
        upper, lower = (found[name] for name in pair)
        pairs = calibrated_pairs(lower.judgements, upper.judgements, (lower.spec, upper.spec))
        one = pairs[0].corrected if pairs else None
        return None if one is None or one.p_value is None else (one.difference, one.p_value)

    return judge, corrected_leaderboard(scores, compared)


def _ranked(runs: Sequence[_Candidate], board: int) -> tuple[str | None, list[LeaderboardEntry]]:
    """Rank the subjects of runs on the same cases, and name the judge if labels correct it."""
    histories: dict[str, list[_Candidate]] = {}
    for run in runs:
        histories.setdefault(run.summary.subject, []).append(run)
    # A run that was killed says less than the complete run before it.
    most = {name: max(run.completeness for run in found) for name, found in histories.items()}
    chosen = {name: [run for run in found if run.completeness == most[name]] for name, found in histories.items()}
    # Of subjects with the same score, the one that costs less comes first, then the one that takes less time.
    latest = sorted((found[-1] for found in chosen.values()), key=_price_and_time)
    # An unfinished run is scored on whichever cases came first, so it has no rank beside others.
    complete = [found for found in latest if found.whole] or latest
    apart = [found for found in latest if not found.whole] if len(complete) < len(latest) else []
    corrected_by, ranked = _standings(complete)
    unranked = leaderboard({found.summary.subject: found.cells for found in apart}) if apart else ()
    without_rank = {"best": 1, "worst": len(latest), "groups": (), "undefined": True}
    standings = (*ranked, *(standing.model_copy(update=without_rank) for standing in unranked))
    entries = []
    for place, standing in enumerate(standings):
        taken = chosen[standing.subject]
        entry = _entry(board, standing, taken, corrected=corrected_by is not None)
        later = sum(run.updated > taken[-1].updated for run in histories[standing.subject])
        entries.append(entry.model_copy(update={"ranked": place < len(ranked), "passed_over": later}))
    return corrected_by, entries


def _price_and_time(found: _Candidate) -> tuple[float, float, str]:
    """Return a sort key: cost and time of a trial, unknown ones last, and the name."""
    paid, seconds = found.summary.cost_per_trial, found.summary.seconds
    return inf if paid is None else paid, inf if seconds is None else seconds, found.summary.subject


def _subjects_of(source: Source) -> Iterator[_Candidate]:
    plan = source.plan
    tally = RunTally(plan)
    updated: dict[str, float] = {}
    keys = case_keys(source, plan)
    judgements = labelled_judgements(source, plan, keys, only_labelled=True)
    for record in source.records():
        tally.add(record)
        judgements.add(record)
        updated[record.subject] = max(updated.get(record.subject, 0.0), record.started)
    planned = frozenset(keys.values())
    for spec, summary in zip(plan.subjects, tally.summary().subjects, strict=True):
        model = spec.options.get("model")
        cells = {keys[case]: cell for case, cell in tally.cells(spec.name).items()}
        own = frozenset(cells) if plan.sparse else planned  # it did not miss the cases of other subjects
        yield _Candidate(
            source=source,
            summary=summary,
            cells=cells,
            planned=own,
            judged_by=judged_by(plan, own, keys) if source.description.content_known or plan.is_imported else {},
            judgements=judgements,
            updated=updated.get(spec.name, 0.0),
            model=model if isinstance(model, str) else None,
            spec=spec.name,
        )


def _entry(board: int, standing: Standing, runs: list[_Candidate], *, corrected: bool) -> LeaderboardEntry:
    found = runs[-1]
    scores = {"score": standing.score, "interval": standing.interval} if corrected else {}
    return LeaderboardEntry(
        board=board,
        standing=standing,
        summary=found.summary.model_copy(update={"costs": {}, "times": {}, **scores}),  # files do not have them
        model=found.model,
        source=found.source.name,
        path=str(found.source.path),
        threshold=max(found.source.plan.thresholds, default=None),
        whole=found.whole,
        ledger=found.summary.ledger,
        updated=found.updated or None,
        history=tuple(run.summary.score for run in runs if run.summary.score is not None),
        cost_interval=found.summary.cost_interval,
        time_interval=found.summary.time_interval,
    )


_WHY_LEFT_OUT = "a control, or without a scored trial"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MAX_NAMED = 20
RANK_COLUMNS = (
    Column("Rank", align="end", help="every place that is consistent with the data"),
    Column("Group", help="subjects that share a letter cannot be told apart"),
)
RANK_NOTE = (
    "Subjects that share a letter cannot be told apart; the rank is every place that is consistent with the data."
)


def describe_leaderboard(board: Leaderboard) -> Report:
    """Describe the rankings and the runs behind them; plots are on the page only."""
    chapters = [section for number in range(1, len(board.boards) + 1) for section in _chapter(board, number)]
    sections = (*chapters, _provenance(board))
    return Report("Leaderboard", sections, headline=_headline(board), tiles=_tiles(board))


def _chapter(whole: Leaderboard, number: int) -> Iterator[Section]:
    """Describe one board; if there are several boards, the titles contain its name."""
    entries, board = whole.on_board(number), whole.boards[number - 1]
    plots = tradeoff_plots((entry.summary, entry.cost_interval, entry.time_interval) for entry in entries)
    unequal = what_was_lost_unequally(board.unequal_losses)
    corrected = f"Scores and ranks are corrected by labels of the judge {visible(board.corrected_by or '', 60)}."
    notes = [
        *([corrected] if board.corrected_by else []),
        *([unequal] if unequal else []),
        *_notes(entries),
        *(_common_notes(whole) if number == len(whole.boards) else ()),
    ]
    found = [section for section in (_ranking(entries, notes), plots) if section]
    if len(whole.boards) == 1:
        yield from found
        return
    ranking, *others = found
    cases = count_of(board.cases, "case")
    how = "; ".join(f"{name}: {visible(value, 200)}" for name, value in board.judged_by.items() if value)
    lead = f"{_first(entries)} {sentence(how) if how else ''}".rstrip()
    yield replace(ranking, id=f"{ranking.id}-{number}", title=(Quote(board.name), f", {cases}"), lead=lead)
    for section in others:
        title = f"{section.title}: {visible(board.name, 60)}, {cases}"
        yield replace(section, id=f"{section.id}-{number}", title=title, in_menu=False)


def _headline(board: Leaderboard) -> str:
    if len(board.boards) == 1:
        return _first(board.entries)
    return (
        f"{len(board.boards):,} rankings, one for each set of cases and way of scoring: scores on different cases, or "
        "by different scorers, thresholds or rules, are not comparable. The latest comes first."
    )


def _first(entries: Sequence[LeaderboardEntry]) -> str:
    return " ".join(filter(None, (_best(entries), unranked_sentence(entries))))


def unranked_sentence(entries: Sequence[LeaderboardEntry]) -> str:
    """Name the subjects that have no complete run, and so no rank; empty if there are none."""
    if entries and not any(entry.whole for entry in entries):
        return "No complete run was found."
    names = [entry.standing.subject for entry in entries if not entry.ranked]
    return f"Unfinished and not ranked: {_names(names)}." if names else ""


def _best(entries: Sequence[LeaderboardEntry]) -> str:
    ranked = [entry.standing for entry in entries if entry.ranked]
    if len(ranked) == 1:
        [only] = ranked
        how = "was tried" if len(entries) == 1 else "has a complete run"
        return f"Only {visible(only.subject, 60)} {how}: {percent(only.score)} ({span(only.interval)})."
    first = [standing for standing in ranked if standing.best == 1 and not standing.undefined]
    if not first:
        return "No two subjects could be compared: they share too few cases."
    if len(first) == 1:
        [best] = first
        return f"First: {visible(best.subject, 60)} with {percent(best.score)} ({span(best.interval)})."
    return f"{len(first):,} subjects may be first: {_names([standing.subject for standing in first])}."


def _tiles(board: Leaderboard) -> tuple[tuple[str, str, str], ...]:
    entries = board.entries
    spent = [entry.summary.spent.cost for entry in entries if entry.summary.spent.cost is not None]
    groups = {(entry.board, group) for entry in entries for group in entry.standing.groups}
    subjects = {entry.standing.subject for entry in entries}
    scored = sum(entry.summary.scored for entry in entries)
    return (
        ("Subjects", f"{len(subjects):,}", f"{len(board.left_out):,} left out"),
        ("Groups", f"{len(groups):,}", "of tied subjects"),
        ("Runs", f"{len({entry.path for entry in entries}):,}", "the latest of each subject"),
        ("Scored", f"{scored:,}", "trial" if scored == 1 else "trials"),
        ("Spent", cost(sum(spent)) if spent else UNKNOWN, "by these subjects in these runs"),
        ("Updated", max((day(entry.updated) for entry in entries if entry.updated), default=UNKNOWN), "UTC"),
    )


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(visible(name, 60) for name in names[:_MAX_NAMED]) + more


def _ranking(entries: Sequence[LeaderboardEntry], notes: Sequence[Phrase]) -> Section:
    split = any(entry.summary.tests for entry in entries)
    titles = (
        Column("Subject"),
        *RANK_COLUMNS,
        *SCORE_COLUMNS,
        *(SHARE_COLUMNS if split else ()),
        Column("Per trial", align="end", help="the mean cost of a finished trial", short="Per\ntrial", drop=7),
    )
    rows = tuple(_row(entry, split=split) for entry in entries)
    table = Table(titles, rows, "Subjects, best first", tuple(notes))
    return Section("ranking", "Ranking", (table,))


def _row(entry: LeaderboardEntry, *, split: bool) -> tuple[Value, ...]:
    return (
        name_datum(entry.summary),
        *rank_cells(entry),
        *score_cells(entry.summary, entry.threshold),
        *(share_cells(entry.summary) if split else ()),
        Datum(cost(entry.summary.cost_per_trial), sort=entry.summary.cost_per_trial),
    )


def rank_cells(entry: LeaderboardEntry) -> tuple[Value, Value]:
    """Return a subject's rank, and the groups that it shares with other subjects, for a table."""
    standing = entry.standing
    groups = " ".join(map(letter, standing.groups)) or UNKNOWN
    return (
        Datum(entry.rank, sort=standing.best),
        Datum(groups, sort=standing.groups[0] if standing.groups else None),
    )


def day(seconds: float | None) -> str:
    """Return a date in UTC; a time outside the calendar is unknown."""
    moment = utc(seconds)
    return f"{moment:%Y-%m-%d}" if moment else UNKNOWN


def letter(number: int) -> str:
    """Return the letter of a group."""
    return _LETTERS[number - 1] if number <= len(_LETTERS) else f"({number})"


def _notes(entries: Sequence[LeaderboardEntry]) -> Iterator[Phrase]:
    if any(entry.standing.undefined and entry.ranked for entry in entries):
        yield "A subject without rank and group shares fewer than two cases with every other subject."
    if any(entry.summary.not_needed for entry in entries):
        yield "Some runs ended when they were decided: intervals and groups assume a fixed number of cases."
    yield from unfinished_notes(entries)
    yield from proven_note(entry.summary.proven_tests for entry in entries)
    if replayed := sum(entry.summary.replayed for entry in entries):
        note = replay_note(replayed, sum(entry.summary.finished for entry in entries))
        yield f"{note}: their cost and time are those of the recording."


def unfinished_notes(entries: Sequence[LeaderboardEntry]) -> Iterator[Phrase]:
    """Yield a note for each subject without a complete run: how much of its run counts."""
    for entry in entries:
        if entry.passed_over:
            runs = count_of(entry.passed_over, "later run lacks", "later runs lack")
            yield Quote(entry.standing.subject), f": {runs} more of the plan, and so cannot replace this one."
        if entry.whole and entry.ledger.undecided:
            yield Quote(entry.standing.subject), f": {describe(entry.ledger, 'trial')}."
        if not entry.whole:
            counts = f"{entry.summary.scored:,} of {entry.summary.planned:,} trials of the latest one count"
            rank = "" if entry.ranked else "; it is not ranked"
            yield Quote(entry.standing.subject), f" has no complete run: {counts}{rank}."


def _common_notes(board: Leaderboard) -> Iterator[Phrase]:
    yield RANK_NOTE
    skipped = f" ({board.selfchecks:,} self-check{'s' * (board.selfchecks != 1)} left out)" if board.selfchecks else ""
    yield f"The latest complete run of each subject counts{skipped}."
    if board.by_id_alone:
        yield "Some cases were paired by their ids only, because a journal or a log does not have their content."
    if board.left_out:
        names = [part for name in board.left_out[:10] for part in (Quote(name), ", ")][:-1]
        yield (f"Left out ({_WHY_LEFT_OUT}): ", *names)
    for problem in board.unreadable[:10]:
        yield ("Not read: ", Quote(problem))


def _provenance(board: Leaderboard) -> Section:
    titles = (
        *columns("Subject", "Run"),
        Column("Model", drop=1),
        Column("History", help="its scores in every run that was read, oldest first"),
        *columns("Cases>", "Trials>", "Last trial"),
    )
    rows = tuple(
        (
            Datum(Quote(entry.standing.subject), tone="strong"),
            Datum(Quote(entry.source), source=entry.path),
            Quote(entry.model) if entry.model else None,
            _history(entry),
            entry.summary.cases,
            entry.summary.finished,
            Datum(day(entry.updated), sort=entry.updated),
        )
        for entry in board.entries
    )
    return Section("provenance", "Runs and history", (Table(titles, rows, "The run of each subject's numbers"),))


def _history(entry: LeaderboardEntry) -> Datum:
    runs = count_of(len(entry.history), "run")
    scores, several = ", ".join(percent(score) for score in entry.history[-_MAX_NAMED:]), len(entry.history) > 1
    return Datum(runs, sort=len(entry.history), trail=trail(entry.history) if several else (), note=scores)
