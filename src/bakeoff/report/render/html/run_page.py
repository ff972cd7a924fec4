"""Write the page of one run. The memory used does not depend on the length of transcripts."""

import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, starmap
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any, get_args

from pydantic import JsonValue

from bakeoff._kernel.files import PRIVATE
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import RunFolderError
from bakeoff.models.prices import MILLION, Price, format_cost, format_mtok_cost
from bakeoff.plan import PROMPT_TAG, Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import NO_USAGE, Answers, Record
from bakeoff.report.answer import answer
from bakeoff.report.blocks import (
    Block,
    Code,
    Column,
    Datum,
    DoorParts,
    Facts,
    Matrix,
    MatrixCell,
    Section,
    Table,
    TextBlock,
    Tone,
    Value,
    Why,
    columns,
    mark_of,
)
from bakeoff.report.compare.within_run import (
    describe_comparisons,
    tag_section,
    tags_of,
    treatment_effects,
    treatment_section,
    useful_tags,
)
from bakeoff.report.formatting import UNKNOWN, cost, duration, known_cost, paid_tile, sentence, shown, token_count, utc
from bakeoff.report.gates import GATE_TONES
from bakeoff.report.judges.calibration import calibration_table
from bakeoff.report.readers import CONCLUSION, Source
from bakeoff.report.reasons import why
from bakeoff.report.render.html.detail import NO_PICTURE, PagePictures, case_detail, record_detail
from bakeoff.report.render.html.drawing import moment
from bakeoff.report.render.html.render import NAME, PAGE_NAME, ChunkWriter, Page, ServedPages, chunk, menu, write_page
from bakeoff.report.render.html.run_data import (
    Bill,
    CellCounts,
    FailureClass,
    FailureCount,
    RunData,
    Sink,
    read_plan,
    read_run,
    read_source,
    readable_errors,
)
from bakeoff.report.run_summary import summary_table
from bakeoff.report.scores import best_first, name_datum, tradeoff_plots
from bakeoff.report.summary import SubjectSummary, tallied
from bakeoff.stats.cells import Cell
from bakeoff.storage.ledger import describe
from bakeoff.storage.run_folder import RunFolder, run_folders
from bakeoff.verdict import Verdict

_LONG_OPTIONS = 20_000
_TONES: Mapping[Verdict, Tone] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "fail",
    Verdict.TIMEOUT: "timeout",
    Verdict.RECORDED: "plain",
}
_CAUSES = {Verdict.INFRA: "infrastructure or provider", Verdict.BUDGET: "limits of the run", Verdict.GRADER: "scorer"}
_MAX_SPECS = 100
_MAX_SESSIONS = 20
_MAX_CELLS = 200_000  # of a page that tells what changed since the run before
_MAX_IN_MENU = 6  # folded sections; the others are seen below them
_MAX_WHYS = 3  # reasons of failures on the first screen


def tone_of(verdict: Verdict) -> Tone:
    """Return the tone that shows a verdict; all lost trials share one."""
    return _TONES.get(verdict, "lost")


def overview(data: RunData) -> Section:
    """Show the scores with their intervals, the corrected scores, and the problems of the journal."""
    corrected = calibration_table(data.judgements.calibrations(), data.name)
    tables = (summary_table(data.summary), *([corrected] if corrected else []))
    found = []
    if data.damaged:
        why = f": {data.first_damage}" if data.first_damage else ""
        verb = "is" if data.damaged == 1 else "are"
        where = "journal" if data.marks or why else "file"
        found.append(f"{count_of(data.damaged, 'line')} of the {where} cannot be read and {verb} left out{why}")
    if data.torn:
        found.append("The journal ends in the middle of a line: a process was killed while writing.")
    if data.unscored:
        trials = count_of(data.unscored, "trial was", "trials were")
        found.append(f"{trials} attempted but not yet scored by the plan's current scorers, and count as not run.")
    if data.foreign:
        foreign = count_of(data.foreign, "record belongs", "records belong")
        found.append(f"{foreign} to an earlier version of the plan; left out.")
    return Section("overview", "Overview", (*[TextBlock(text, tone="lost") for text in found], *tables))


def tradeoffs(data: RunData) -> Section | None:
    """Plot scores against cost and time."""
    scored = [one for one in data.summary.subjects if one.score is not None]
    return tradeoff_plots((one, one.cost_interval, one.time_interval) for one in scored)


def costs(data: RunData) -> Section | None:
    """Show cost and tokens by subject, and the savings that a prompt cache would bring; None if nothing was paid."""
    paid = [one for one in data.summary.subjects if one.spent.tokens or one.spent.cost is not None]
    if not paid:
        return None
    titles = (
        Column("Subject"),
        Column("Spent", "end", help="with retries and killed attempts"),
        *columns("Per trial>", "Input tokens>", "Cached>", "Output tokens>"),
        Column("Recorded attempts", "end", help="the price of the recorded conversations"),
        Column("With a cache", "end", help="the same conversations with cached prefixes"),
        *columns("Saving>", "Cache reads>", "Cache writes>"),
    )
    notes = (
        "With a cache: simulated for each conversation. The prefix is read at the read price, the rest is written "
        "at the write price (a tenth and five quarters of the input price if a model has none).",
    )
    rows = tuple(_cost_row(one, data.bills[one.subject]) for one in paid)
    tables = [Table(titles, rows, "Money and tokens, by subject", notes)]
    if prices := tuple(_price_row(name, bill.price) for name, bill in data.bills.items() if bill.price is not None):
        rates = columns("Input / MTok>", "Output / MTok>", "Cache read / MTok>", "Cache write / MTok>")
        titles = (*columns("Subject", "Price of"), *rates, *columns("Source", "Date"))
        tables.append(Table(titles, prices, "Prices used, in USD per million tokens"))
    return Section("costs", "Cost", tuple(tables))


def _cost_row(subject: SubjectSummary, bill: Bill) -> tuple[Value, ...]:
    spent, priced, guessed = subject.spent, bill.price is not None, bool(subject.estimated)
    saving, tokens = bill.total - bill.simulated, (spent.input, spent.cache_read, spent.output)
    share = f" ({100 * saving / bill.total:.0f} %)" if bill.total else ""
    saved = f"{'−' if saving < 0 else ''}{format_cost(abs(saving))}{share}"
    return (
        name_datum(subject),
        Datum(known_cost(spent, estimated=guessed), sort=spent.cost, tone="strong"),
        Datum(cost(subject.cost_per_trial, estimated=guessed), sort=subject.cost_per_trial),
        *(Datum(token_count(used, estimated=guessed), sort=used) for used in tokens),
        Datum(cost(bill.total if priced else None), sort=bill.total),
        Datum(cost(bill.simulated if priced else None), sort=bill.simulated),
        Datum(saved if priced else UNKNOWN, sort=saving),
        *(bill.hits, bill.writes),
    )


def _price_row(name: str, price: Price) -> tuple[Value, ...]:
    rates = (price.input, price.output, price.cache_read, price.cache_write)
    return (
        visible(name, NAME),
        visible(price.key, NAME),
        *(Datum(UNKNOWN if rate is None else format_mtok_cost(float(rate * MILLION))) for rate in rates),
        visible(price.source, NAME),
        str(price.date) if price.date else UNKNOWN,
    )


def gates(data: RunData) -> Section | None:
    """Show the gates that the command or session judged, and the ledger of the run."""
    found, ledger = data.known.gates, data.known.ledger
    if not found:
        return None
    table = Table(
        columns("Gate", "Verdict", "Why"),
        tuple((one.option, Datum(one.word, tone=GATE_TONES[one.state]), visible(one.sentence, 2000)) for one in found),
        "Gates on the run",
    )
    return Section("gates", "Gates", (table,), sentence(describe(ledger, "eval")) if ledger else "")


def failures(data: RunData, gate: str = "") -> Section:
    """Group the trials that did not pass by their reason.

    Controls fail on purpose, so they are listed only if there are no other subjects. If a gate did not pass, the
    section never says that nothing failed.
    """
    found = _most_frequent(data)
    controls = sum(count.subjects.total() for kind, count in data.failures.items() if kind not in found)
    lead = f"{count_of(controls, 'more is', 'more are')} of controls, which only test the cases." if controls else ""
    if not found:
        return Section("failures", "Failures", (_without_failures(data, gate),), lead)
    titles = (
        *columns("Outcome", "Class"),
        Column("Reason", help="without what differs between trials: numbers, ids, paths and quoted texts"),
        *columns("Cause", "Trials>", "Cases>", "Subjects", "Example"),
    )
    rows = tuple(starmap(_failure_row, found.items()))
    return Section("failures", "Failures", (Table(titles, rows, "Trials that did not pass, by reason"),), lead)


def _most_frequent(data: RunData) -> dict[FailureClass, FailureCount]:
    only_controls = not data.summary.judged
    found = [(kind, count) for kind, count in data.failures.items() if only_controls or not kind.control]
    return dict(sorted(found, key=lambda item: -item[1].subjects.total()))


def _why_failed(data: RunData) -> Iterator[Why]:
    """Yield the outcome, class, an example and the frequency of the most frequent reasons of failures."""
    for kind, count in islice(_most_frequent(data).items(), _MAX_WHYS):
        trials = count.subjects.total()
        often = f"{count_of(trials, 'trial')}{' like this' if trials > 1 else ''}: {_subjects_of(count)}"
        why = count.example.removeprefix(f"{kind.name}: ") or "open a trial"
        yield Datum(kind.verdict, tone=tone_of(kind.verdict)), kind.name, Datum(why, href=f"#t={count.trial}"), often


def _without_failures(data: RunData, gate: str) -> TextBlock:
    if gate in ("failed", "undecided"):
        return TextBlock(f"No single trial failed, but the gate is {gate}: the top of the page says why.", tone="fail")
    if not data.plan.thresholds:
        return TextBlock("No threshold was set, so that no trial can fail.")
    whole = data.summary.complete and gate != "incomplete"
    return TextBlock("Nothing failed." if whole else "Nothing failed so far.")


def _failure_row(kind: FailureClass, count: FailureCount) -> tuple[Value, ...]:
    return (
        Datum(kind.verdict, tone=tone_of(kind.verdict)),
        kind.name,
        kind.reason or UNKNOWN,
        _CAUSES.get(kind.verdict, "subject"),
        count.subjects.total(),
        len(count.cases),
        _subjects_of(count),
        Datum(count.example or "open a trial", href=f"#t={count.trial}"),
    )


def _subjects_of(count: FailureCount) -> str:
    more = f" and {len(count.subjects) - 4} more" if len(count.subjects) > 4 else ""
    return ", ".join(f"{visible(name, 40)} ({number:,})" for name, number in count.subjects.most_common(4)) + more


def settings(data: RunData) -> Section:
    """Show the plan: cases, rounds, thresholds, the options of subjects and scorers, and when it ran."""
    plan = data.plan
    pairs = (
        ("Plan", visible(plan.name, NAME)),
        ("Run", visible(data.name, NAME)),
        ("Cases", f"{len(plan.cases):,}"),
        ("Rounds", f"{plan.rounds:,}"),
        ("Pass threshold", _thresholds(plan)),
        ("Seed", visible(str(plan.seed), NAME)),
        ("Trials planned", f"{data.summary.planned:,}"),
        *(("Started" if mark.kind == "start" else "Ended", _facts(mark.facts)) for mark in data.marks[:_MAX_SESSIONS]),
    )
    blocks: list[Block] = [Facts(pairs)]
    blocks += [_spec("subject", spec) for spec in plan.subjects[:_MAX_SPECS]]
    blocks += [_spec("scorer", spec) for spec in plan.every_scorer[:_MAX_SPECS]]
    if len(plan.subjects) > _MAX_SPECS:
        blocks.append(TextBlock(f"{len(plan.subjects) - _MAX_SPECS:,} more subjects are in plan.json.", tone="muted"))
    return Section("settings", "Settings", tuple(blocks))


def _thresholds(plan: Plan) -> str:
    """Return the threshold of all cases, or the lowest and the highest."""
    found = plan.thresholds
    if not found:
        return "none"
    shown = f"{found[0]:g}" if len(found) == 1 else f"{found[0]:g} to {found[-1]:g}, by case"
    without = any(case.pass_rule is not None and case.pass_rule.threshold is None for case in plan.cases)
    return f"{shown}; some cases have none" if without else shown


def _facts(facts: Mapping[str, Any]) -> str:
    """Return all facts of a journal mark, including unknown ones from newer versions."""
    time = facts.get("time")
    told = [moment(time) if isinstance(time, int | float) else "at an unknown time"]
    for key, value in facts.items():
        if key not in ("type", "v", "time", *CONCLUSION) and value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            told.append(f"{visible(key, 40)} {visible(text, 300)}")
    return "; ".join(told)


def _spec(what: str, spec: SubjectSpec | ScorerSpec) -> Block:
    title = f"{what} {visible(spec.name or spec.kind, 80)}: {visible(spec.kind, 80)}"
    facts: dict[str, JsonValue] = {**spec.options, **({"revision": spec.revision} if spec.revision else {})}
    if not facts:
        return Code("no options", "text", title)
    return Code(shown(json.dumps(facts, ensure_ascii=False, indent=2)[:_LONG_OPTIONS]), "json", title)


DRAWN_CELLS = 2_000
"""The number of cells above which a page draws only the visible part of a matrix."""

MAX_LISTED = 20_000
"""The most trials that a page lists, of those that passed and of those that did not. It lists the newest ones."""

VERDICTS = tuple(Verdict)
ANSWERS = get_args(Answers)
_MAX_BADGES = 12
_NUMBERS = ("trial", "verdict", "answers", "chunk", "place", "picture", "estimated")
_AMOUNTS = ("score", "cost", "tokens", "seconds")
_NO_REASON = "no scorer returned a number"

Parts = Callable[[RunData], DoorParts]


def no_parts(data: RunData) -> DoorParts:  # noqa: ARG001 - the signature that doors implement
    """Add nothing to the page of a run."""
    return DoorParts()


class TrialTable:
    """The list of trials, in columns that a page can sort and filter without unpacking records."""

    def __init__(self) -> None:
        self._found: Counter[bool] = Counter()  # trials, by whether they passed
        self._numbers: dict[str, array[int]] = {name: array("q") for name in _NUMBERS}
        self._amounts: dict[str, array[float]] = {name: array("d") for name in _AMOUNTS}  # NaN: unknown
        self._why: list[str] = []

    @property
    def trials(self) -> "array[int]":
        """Return the indices of the trials that are listed."""
        return self._numbers["trial"]

    def has_room(self, record: Record) -> bool:
        """Count a trial to list. Return False if the page already has too many of its kind."""
        self._found[record.verdict.ok] += 1
        return self._found[record.verdict.ok] <= MAX_LISTED

    @property
    def left_out(self) -> int:
        """Return how many trials are recorded, but not listed."""
        return self._found.total() - len(self.trials)

    def what_is_listed(self) -> str:
        """Say which trials the page lists, if it does not list all of them."""
        if not self.left_out:
            return ""
        kinds = ((False, "that did not pass"), (True, "that passed"))
        parts = [
            f"the newest {MAX_LISTED:,} of {found:,} {which}" if found > MAX_LISTED else f"all {found:,} {which}"
            for ok, which in kinds
            if (found := self._found[ok])
        ]
        return f"This page lists {len(self.trials):,} of {self._found.total():,} trials: {' and '.join(parts)}."

    def add(self, trial: int, record: Record, chunk: int, place: int, picture: int = NO_PICTURE) -> None:
        """List a trial.

        Args:
            trial: its index in the plan.
            record: its record, of which only numbers and the reason are kept.
            chunk: the number of the chunk that holds the whole record.
            place: the index of the record in that chunk.
            picture: the number of its picture, or else `NO_PICTURE` or `NO_ANSWER`.
        """
        value, spent = record.value, record.used
        kinds = VERDICTS.index(record.verdict), ANSWERS.index(record.answers)
        numbers = (trial, *kinds, chunk, place, picture, record.usage_is_estimated)
        amounts = (
            None if value is None else round(value, 4),
            spent.cost,
            min(spent.tokens, 2**53) or None,
            round(record.seconds, 4) if record.timed else None,
        )
        for number, column in zip(numbers, self._numbers.values(), strict=True):
            column.append(number)
        for amount, values in zip(amounts, self._amounts.values(), strict=True):
            values.append(nan if amount is None else amount)
        self._why.append("" if record.verdict.ok else visible(why(record) or _NO_REASON, 160))

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns in the order of the plan."""
        order = sorted(range(len(self.trials)), key=self.trials.__getitem__)
        plain: dict[str, Sequence[Any]] = {**self._numbers, "why": self._why}
        found = {name: [column[row] for row in order] for name, column in plain.items()}
        for name, values in self._amounts.items():
            whole = int if name == "tokens" else float
            found[name] = [None if isnan(value := values[row]) else whole(value) for row in order]
        return found


def write_run_page(
    folder: RunFolder,
    path: Path | None = None,
    *,
    parts: Parts = no_parts,
    served: ServedPages | None = None,
    cycle: int | None = None,
) -> Path:
    """Write a run's page and return its path, by default beside its journal.

    The run may still be going on, and its folder may be damaged or hostile.

    Args:
        folder: the run.
        path: where to write it.
        parts: makes the sections that a door adds, from the same data.
        served: the addresses to link to, if a server shows the page.
        cycle: the number of the watch cycle; the page reloads after the next one (`write_cycle`).

    Raises:
        RunFolderError: the run cannot be shown; the message says why.
    """
    path = path or folder.path / PAGE_NAME
    return _write(folder, lambda sink: read_run(folder, sink), path, parts, served, cycle=cycle)


def write_source_page(
    source: Source, path: Path, *, parts: Parts = no_parts, mode: int = PRIVATE, cycle: int | None = None
) -> Path:
    """Write the page of anything that a reader knows, such as a result file.

    A page with the number of a watch `cycle` reloads after the next one (`write_cycle`).
    """
    return _write(source.path, lambda sink: read_source(source, sink), path, parts, None, mode, cycle)


def _write(
    what: RunFolder | Path,
    read: Callable[[Sink], RunData],
    path: Path,
    parts: Parts,
    served: ServedPages | None,
    mode: int = PRIVATE,
    cycle: int | None = None,
) -> Path:
    trials = TrialTable()
    with tempfile.TemporaryFile() as data:
        records = ChunkWriter(data, "records")
        pictures = PagePictures(what if isinstance(what, RunFolder) else None)

        def keep(trial: int, record: Record, case: Case) -> None:
            if trials.has_room(record):
                trials.add(trial, record, *records.add(record_detail(record, case)), pictures.find(record, case))

        with readable_errors(what):
            run = read(keep)
            records.close()
            cases = ChunkWriter(data, "cases")
            places = [cases.add(case_detail(case)) for case in run.plan.cases]
            cases.close()
            shown = pictures.write(data)
            of_door = parts(run)
            before = {"before": _before(run)} if of_door.answers else {}
            first = chunk("trials", {**_trials(run, trials, places), **shown, **before})
            content = _content(run, trials, of_door)
        page = Page("run", "run.html", path, served, cycle)
        halves = page.halves(first, **content)
        data.writelines(page.data())
        write_page(path, halves, data, mode)
    return path


def _trials(run: RunData, trials: TrialTable, places: list[tuple[int, int]]) -> dict[str, Any]:
    plan = run.plan
    controls = {one.subject: one.control for one in run.summary.subjects}
    tags = {tag: place for place, tag in enumerate(useful_tags(plan))}  # to filter by; cases name their places
    prompts = list(dict.fromkeys(case.tags[PROMPT_TAG] for case in plan.cases if case.name != case.id))
    prompted = plan.cases if len(prompts) > 1 and all(case.name != case.id for case in plan.cases) else ()
    return {
        "subjects": [visible(spec.name, NAME) for spec in plan.subjects],
        "marks": [mark_of(spec.name, control=controls[spec.name]) for spec in plan.subjects],
        "best_first": _subject_order(run),
        "cases": [visible(case.id, NAME) for case in plan.cases],
        "prompts": [visible(prompt, NAME) for prompt in prompts] if prompted else [],
        "case_names": [visible(case.name, NAME) for case in prompted],
        "case_prompt": [prompts.index(case.tags[PROMPT_TAG]) for case in prompted],
        "rounds": plan.rounds,
        "verdicts": VERDICTS,
        "answer_kinds": ANSWERS,
        "case_scores": _case_scores(run.plan, run.cells),
        "case_verdicts": _case_verdicts(run) if run.summary.own_rules else None,
        "tags": [visible(tag, NAME) for tag in tags],
        "case_tags": [[tags[tag] for tag in tags_of(case) if tag in tags] for case in plan.cases] if tags else [],
        "case_chunk": [chunk for chunk, _ in places],
        "case_place": [place for _, place in places],
        "counts": run.counts.columns() if trials.left_out else None,
        "left_out": trials.left_out,
        **trials.columns(),
    }


def _before(run: RunData) -> dict[str, Any] | None:
    """Return the scores of each case for each subject in the run of this plan before this one; None without one."""
    here = run.folder
    if here is None or len(run.plan.cases) * len(run.plan.subjects) > _MAX_CELLS:
        return None
    known = run_folders(here.path.parent.parent)
    place = next((at for at, one in enumerate(known) if one.path == here.path), 0)
    for one in reversed(known[:place]):
        with suppress(RunFolderError, OSError, ValueError):
            if one.title == here.title and (plan := read_plan(one)).name == run.plan.name:
                tally = tallied(plan, one.latest_records(plan))
                scores = _case_scores(run.plan, {spec.name: tally.cells(spec.name) for spec in plan.subjects})
                return {"run": visible(one.label, NAME), "scores": scores}
    return None


def _content(run: RunData, trials: TrialTable, of_door: DoorParts) -> dict[str, Any]:
    name = visible(run.plan.name, NAME)
    cells_of = run.cells.__getitem__
    compared, told = run.summary.comparisons, of_door.verdict
    if not told and run.state != "running":
        told = run.known.sentence_of(run.plan, run.summary)
    state, first = of_door.gate or run.state, overview(run)
    below = (  # in the order in which people ask
        failures(run, state),
        gates(run),
        *of_door.first,
        None if compared is None else describe_comparisons(compared),
        *of_door.after,
        treatment_section(treatment_effects(run.plan, run.summary, cells_of)),
        tag_section(run.plan, cells_of, [one.subject for one in run.summary.judged]),
        tradeoffs(run),
        costs(run),
        settings(run),
    )
    folded = [replace(section, folded=section.folded is not False) for section in below if section]
    return {
        "title": f"{name} · {visible(run.name, NAME)}",
        "heading": name,
        "state": run.state if run.state == "running" else state,
        "headline": f"{told} {answer(run.plan, run.summary, cells_of, run.judgements)}".lstrip(),
        "badges": [*_badges(run)][:_MAX_BADGES],
        "tiles": _tiles(run),
        "whys": [*_why_failed(run)],
        "overview": first,
        "folded": folded,
        "answers": of_door.answers,
        "matrix": None if of_door.answers else _matrix(run, trials),
        "left_out": trials.what_is_listed(),
        "menu": [
            *menu([first]),
            {"id": "matrix", "title": "Answers" if of_door.answers else "Cases"},
            *menu(folded[:_MAX_IN_MENU]),
            {"id": "trials", "title": "Trials"},
        ],
    }


def _badges(run: RunData) -> Iterator[str]:
    """Yield the other conditions of the scores: checkout, MCP servers, versions and recordings."""
    if label := run.plan.origin.label:
        yield visible(f"{run.plan.origin.track}: {label}" if run.plan.origin.track else label, NAME)
    for name in dict.fromkeys(name for spec in run.plan.subjects for name in _servers(spec)):
        yield f"MCP: {visible(name, NAME)}"
    for subject, version in run.versions.items():
        yield visible(version if subject.split()[0] in version else f"{subject} {version}", NAME)
    for how in ("replayed", "recorded"):
        if number := getattr(run.summary, how):
            yield f"{number:,} of {run.summary.finished:,} {how}"


def _servers(spec: SubjectSpec) -> Iterator[str]:
    """Yield the names of the MCP servers of a subject."""
    given = spec.options.get("mcp")
    servers = given if isinstance(given, list) else []
    named = [server.get("name") for server in servers if isinstance(server, dict)]
    yield from (name for name in named if isinstance(name, str))
    if any(isinstance(server, str) for server in servers):  # as typed: the name of the subject has shorter ones
        yield from spec.name.removesuffix(f" with {spec.treatment}").split(" + ")[1:]


def _tiles(run: RunData) -> list[tuple[str, str, str]]:
    subjects, judged = run.summary.subjects, run.summary.judged
    scored = sum(subject.scored for subject in subjects)
    of_judged = sum(subject.judged for subject in judged)
    controls = ", without controls" if len(judged) < len(subjects) else ""
    lost = sum((Counter(subject.lost) for subject in subjects), Counter[Verdict]())
    missing = sum(subject.missing for subject in subjects)
    times = [mark.facts.get("time") for mark in run.marks]
    known = [time for time in times if isinstance(time, int | float)]
    took = duration(max(known) - min(known)) if len(known) > 1 else ""
    started = known[0] if known else run.first_started
    spent, judging = sum((subject.spent for subject in subjects), NO_USAGE), run.summary.judging
    at = utc(started) if isfinite(started) else None
    passed = "–" if not run.plan.thresholds else f"{sum(subject.passed for subject in judged):,}"
    return [
        ("Passed", passed, f"of {of_judged:,} {'judged' if run.summary.own_rules else 'scored'}{controls}"),
        ("Scored", f"{scored:,}", f"of {run.summary.planned:,} planned"),
        ("Lost", f"{lost.total():,}", ", ".join(f"{count:,} {verdict}" for verdict, count in lost.items())),
        ("Not run", f"{missing:,}", ""),
        paid_tile("Spent", spent, estimated=any(subject.estimated for subject in subjects)),
        *([paid_tile("Judges", judging)] if judging != NO_USAGE else []),
        ("Started", f"{at:%Y-%m-%d}" if at else "–", ", ".join(filter(None, (f"{at:%H:%M} UTC" if at else "", took)))),
    ]


def _matrix(run: RunData, trials: TrialTable) -> Matrix | None:
    """Return the matrix; None if it has so many cells that the page draws only the visible ones."""
    plan, width = run.plan, len(run.plan.subjects)
    cells = len(plan.cases) * width
    if cells > DRAWN_CELLS:
        return None
    first: dict[int, int] = {}  # the first trial that is listed, by cell
    for trial in trials.trials:
        first[trial % cells] = min(trial, first.get(trial % cells, trial))
    scores, verdicts = _case_scores(plan, run.cells), _case_verdicts(run)
    drawn = [_cell(run.counts, at, first.get(at), scores[at], verdicts[at]) for at in range(cells)]
    order = _subject_order(run)
    rows = [(visible(case.id, NAME), drawn[at * width : (at + 1) * width]) for at, case in enumerate(plan.cases)]
    judged = {one.subject for one in run.summary.judged}
    counts = [at for at in order if plan.subjects[at].name in judged]
    rows.sort(key=lambda row: all(cell is None or cell.tone in ("pass", "plain") for cell in _at(row[1], counts)))
    names = [plan.subjects[at].name for at in order]
    tones: list[Tone] = ["plain" if name in judged else "muted" for name in names]
    titles = tuple(
        Datum(visible(name, NAME), tone=tone, mark=mark_of(name, control=tone == "muted"))
        for name, tone in zip(names, tones, strict=True)
    )
    return Matrix(
        corner="Case",
        columns=titles,
        rows=tuple((name, _at(cells, order)) for name, cells in rows),
        caption="Score by case and subject",
    )


def _at(cells: Sequence[MatrixCell | None], places: Sequence[int]) -> tuple[MatrixCell | None, ...]:
    return tuple(cells[place] for place in places)


def _subject_order(run: RunData) -> list[int]:
    """Return the indices of subjects in the plan, best score first."""
    places = {spec.name: place for place, spec in enumerate(run.plan.subjects)}
    return [places[one.subject] for one in best_first(run.summary.subjects)]


def _case_scores(plan: Plan, scored: Mapping[str, Mapping[str, Cell]]) -> list[float | None]:
    """Return the score of each case for each subject."""
    cells = (scored.get(spec.name, {}).get(case.id) for case in plan.cases for spec in plan.subjects)
    return [round(cell.mean, 4) if cell else None for cell in cells]


def _case_verdicts(run: RunData) -> list[Verdict | None]:
    """Return the verdict of each case for each subject; None for cases whose trials are judged one by one."""
    return [run.cases.of(spec.name, case.id).verdict for case in run.plan.cases for spec in run.plan.subjects]


def _cell(
    counts: CellCounts, at: int, first: int | None, score: float | None, verdict: Verdict | None
) -> MatrixCell | None:
    """Return one cell of the matrix. Only cases with their own pass rule have a `verdict`."""
    scored, passed, timeouts, lost = counts.scored[at], counts.passed[at], counts.timeouts[at], counts.lost[at]
    if not scored + lost:
        return None
    losses = f", {lost} lost" if lost else ""
    if verdict is not None:
        rounds = f"{passed} of {count_of(scored, 'round')} passed{losses}"
        tone, note = tone_of(verdict), f"{verdict}: {rounds}"
        if verdict is Verdict.RECORDED:
            tone, note = "fail" if score == 0 else tone, "recorded"
    elif score is None:
        tone, note = "lost", f"{lost} lost"
    else:
        all_passed = passed == scored or score == 1
        tone = "pass" if all_passed else "partial" if score > 0 else "timeout" if timeouts == scored else "fail"
        note = f"{passed} of {scored} passed{losses}"
    href = None if first is None else f"#t={first}"
    text = "lost" if score is None else f"{100 * score:.0f}"
    return MatrixCell(text=text, sort=score, tone=tone, note=note, href=href)
