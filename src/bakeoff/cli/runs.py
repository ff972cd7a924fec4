"""Implement `bakeoff runs`: list, show, check, sign, upload and delete runs."""

import asyncio
import heapq
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from bakeoff._kernel.text import count_of, part_of, shorten, visible
from bakeoff.cli.console import add_row, out, print_json, say, table
from bakeoff.cli.declare import FAILED, PASSED, UNDECIDED, command, flag, group_of
from bakeoff.cli.flags import AsJson, Results, RunName, Sandbox, Trust, Yes
from bakeoff.errors import BakeoffError, RunFolderError, UsageError
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.engine.registry import ResolvedPlan
    from bakeoff.plan import Plan, Trial
    from bakeoff.record import Record
    from bakeoff.report.readers import Source
    from bakeoff.report.summary import CaseVerdicts
    from bakeoff.storage.repair import Repair, RunDamage
    from bakeoff.storage.run_folder import RunFolder

app = group_of("List, show, check and delete past runs.", "bakeoff runs show latest")

_SHOWN = 20
_FILES = (".json", ".jsonl", ".eval")  # endings of result files
_SPARKS = 10  # scores of earlier runs in the table


@command(app, "list")
def list_runs(*, results: Results = Path("results"), as_json: AsJson = False) -> None:
    """List all runs, newest first.

    Example: bakeoff runs list --json
    """

    from bakeoff.report.blocks import Column, Quote, Table, sparkline
    from bakeoff.report.render.html.index_page import run_overviews
    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.storage.run_folder import place_of_runs
    from bakeoff.storage.store_copy import fetch_all

    fetch_all(results, say)
    rows = run_overviews(results)[::-1]
    if as_json:
        print_json(rows)
        return
    if not rows:
        say(f"{place_of_runs(results)} has no runs yet; `bakeoff demo` makes one")
        return
    columns = {
        "run": Column("run"),
        "state": Column("state"),
        "scored": Column("scored/planned", align="end", drop=1),
        "subjects": Column("subjects", align="end", drop=4),
        "best": Column("best score", align="end"),
        "history": Column("history", align="end", drop=2, optional=True),
        "cost": Column("cost", align="end", drop=3),
    }
    if all(len(row["history"]) < 2 for row in rows):
        del columns["history"]
    for row in rows:
        row["history"] = sparkline(row["history"][-_SPARKS:])
        if row.get("damaged"):
            row["state"] = f"{row['state']}, {count_of(row['damaged'], 'damaged line')}"
    cells = (tuple(Quote(str(row[key])) for key in columns) for row in rows)
    print_blocks(out(), [Table(tuple(columns.values()), tuple(cells))])


@command(app, "show")
def show_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    case: str | None = flag(None, "Show only the trial of this case.", metavar="CASE"),
    subject: str | None = flag(None, "With --case: the subject, if there are several.", metavar="NAME"),
    round_: int = flag(1, "With --case: the round.", "--round", metavar="N"),
    as_json: AsJson = False,
) -> None:
    """Show the summary of a run and the trials that did not pass, or one trial.

    Example: bakeoff runs show latest
    """

    from bakeoff.cli.run_plan import print_spending
    from bakeoff.report.judges.calibration import Judgements, calibration_table
    from bakeoff.report.readers import RunFolderReader, Source, find_source, is_log
    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.report.run_summary import summary_blocks, summary_json
    from bakeoff.report.summary import RunTally
    from bakeoff.storage.labels import read_labels
    from bakeoff.storage.run_folder import LATEST, find_run

    if case is not None:
        show_trial(find_run(results, run), case, subject, round_, as_json=as_json)
        return
    if subject is not None or round_ != 1:
        raise UsageError("--subject and --round name a trial: add --case")
    if run != LATEST and (run.endswith(_FILES) or is_log(Path(run))):
        _show_file(find_source(results, run), as_json=as_json)
        return
    folder = find_run(results, run)
    plan = folder.read_plan()
    tally = RunTally(plan)
    judgements = Judgements(plan, read_labels(folder.labels_file), only_labelled=True)
    for record in folder.latest_records(plan):
        tally.add(record)
        judgements.add(record)
    summary = tally.summary()
    known = Source(folder.path, RunFolderReader()).circumstances()
    outcome = known.state_of(plan, summary)
    if as_json:
        corrected = [one.model_dump(mode="json") for one in judgements.calibrations()]
        told = summary_json(plan, summary, tally, folder, judgements)
        print_json({**told, "outcome": outcome, "calibrations": corrected})
        return
    console = out()
    running = folder.is_being_written()
    console.print(Text(f"{folder.label}: {'running' if running else outcome}"))
    if not running and (gate := known.sentence_of(plan, summary)):
        console.print(Text(gate))
    corrections = calibration_table(judgements.calibrations(), folder.label)
    blocks = summary_blocks(plan, summary, tally.cells, judgements)
    print_blocks(console, [*blocks, *([corrections] if corrections else [])])
    print_spending(console, summary, folder)
    _print_failures(plan, folder.latest_records(plan), tally.cases)


def _show_file(source: "Source", *, as_json: bool) -> None:
    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.report.run_summary import summary_blocks, summary_json
    from bakeoff.report.summary import tallied

    plan, records = source.plan, list(source.records())
    tally = tallied(plan, records)
    summary, known = tally.summary(), source.circumstances()
    state = known.state_of(plan, summary)
    if as_json:
        print_json({**summary_json(plan, summary, tally, source), "outcome": state})
        return
    out().print(Text(f"{visible(str(source.path), 300)}: {state}"))
    if gate := known.sentence_of(plan, summary):
        out().print(Text(gate))
    print_blocks(out(), summary_blocks(plan, summary, tally.cells))
    _print_failures(plan, records, tally.cases)


def _print_failures(plan: "Plan", records: "Iterable[Record]", cases: "CaseVerdicts") -> None:
    """Print the first failed rounds of failed cases, in the plan's order."""

    from bakeoff.report.reasons import why

    failing = (record for record in records if not record.verdict.ok and not cases.passed(record))
    places = {case.id: place for place, case in enumerate(plan.cases)}
    first = heapq.nsmallest(_SHOWN + 1, failing, key=lambda record: (record.round, places[record.case], record.subject))
    if not first:
        return
    shown = table("verdict", "case", "subject", "round", "why")
    for record in first[:_SHOWN]:
        told = why(record) or "no scorer returned a number"
        cells = (record.verdict, record.case, record.subject, str(record.round + 1), told)
        add_row(shown, *(Text(visible(cell, 100)) for cell in cells))
    out().print()
    out().print(shown)
    if len(first) > _SHOWN:
        out().print("… and more")


_MAX_ANSWER_LENGTH = 20_000  # characters of an answer; --json prints all


def show_trial(folder: "RunFolder", case: str, subject: str | None, round_: int, *, as_json: bool) -> None:
    """Print the record of a trial. Raise UsageError if the plan has no such trial, or it is not finished."""

    from bakeoff.report.formatting import as_text, cost

    plan = folder.read_plan()
    trial = _find_trial(plan, case, subject, round_)
    record = folder.latest_record(trial)
    if record is None:
        name, label = _trial_name(trial), folder.label
        raise UsageError(f"run {label} has no result of {name}: `bakeoff resume {label}` runs what is left")
    if as_json:
        print_json({"verdict": record.verdict, **record.model_dump(mode="json", exclude_defaults=True)})
        return
    out().print(Text(f"{folder.label}, {_trial_name(trial)}: {record.verdict}"))
    lines = []
    for score in record.scores:
        value = "unscored" if score.value is None else f"{score.value:g}"
        lines.append(f"{score.name}: {value}" + (f" ({score.reason})" if score.reason else ""))
    if record.failure is not None:
        lines.append(f"{record.failure.type}: {record.failure.message}")
    if record.attempt is not None:
        lines.append(f"{record.attempt.seconds:.2f} s, {cost(record.spent.cost)}, tries: {record.tries}")
    for line in lines:
        out().print(Text(f"  {visible(line, 500)}"))
    if record.transcript is not None:
        for line in shorten(as_text(record.transcript.output) or "", _MAX_ANSWER_LENGTH).split("\n"):
            out().print(Text(visible(line, _MAX_ANSWER_LENGTH)))


def _trial_name(trial: "Trial") -> str:
    return f"round {trial.round + 1} of {visible(trial.subject.name, 100)!r} on {visible(trial.case.id, 100)!r}"


def _find_trial(plan: "Plan", case: str, subject: str | None, round_: int) -> "Trial":
    names = [spec.name for spec in plan.subjects]
    if subject is None and len(names) > 1:
        shown = ", ".join(visible(name, 60) for name in names[:10])
        raise UsageError(f"--case {visible(case, 60)} needs --subject: the run has {len(names)} of them ({shown})")
    trial = plan.find(case, names[0] if subject is None else subject, round_ - 1)
    if trial is not None:
        return trial
    if not 1 <= round_ <= plan.rounds:
        raise UsageError(f"--round {round_} is not between 1 and {plan.rounds}, the rounds of the run")
    if subject is not None and subject not in names:
        raise UsageError(f"--subject {visible(subject, 60)} is not in the run: `bakeoff runs show` lists its subjects")
    raise UsageError(f"--case {visible(case, 60)} is not in the run, which has {len(plan.cases):,} cases")


@command(app, "check")
def check_run(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    repair: bool = flag(False, "Keep what is whole, and put damaged lines into a file beside the journal."),
    as_json: AsJson = False,
) -> int:
    """Check the files of a run for damage. Exits with 1 if there is any.

    Example: bakeoff runs check latest --repair
    """

    from bakeoff.storage import store_upload
    from bakeoff.storage.repair import find_damage, repair_run
    from bakeoff.storage.run_folder import find_run
    from bakeoff.storage.store_copy import store_of

    folder = find_run(results, run)
    repaired = repair_run(folder) if repair else None
    store = store_of(folder.path.parent.parent)
    if repaired is not None and repaired.changed and store is not None:
        store_upload.upload_run(store, folder.path, whole=True)
    found = find_damage(folder)
    if as_json:
        print_json(_damage_json(found, repaired))
        return int(found.any)
    if repaired is not None:
        _print_repair(folder, repaired)
    counted = f"{count_of(found.records, 'record')}, {count_of(len(found.damaged), 'damaged line')}"
    out().print(Text(f"{folder.label}: {counted}"))
    journal = folder.journal_file.name
    _print_first([f"{f'{journal}:{one.line}: ' if one.line else ''}{one.reason}" for one in found.damaged])
    for note in _damage_notes(found):
        out().print(Text(f"  {note}"))
    return int(found.any)


def _print_first(lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        out().print(Text(f"  {visible(line)}"))
    if len(lines) > _SHOWN:
        out().print(f"  … and {len(lines) - _SHOWN:,} more")


def _damage_json(found: "RunDamage", repaired: "Repair | None") -> dict[str, object]:
    data: dict[str, object] = {
        "run": found.folder.name,
        "records": found.records,
        "damaged": [{"line": damage.line, "reason": damage.reason} for damage in found.damaged],
        "torn": found.folder.has_torn_line(),
        "damaged_labels": found.labels,
        "damaged_plan": found.plan,
        "without_checksum": found.without_checksum,
    }
    if repaired is not None:
        aside = [{"line": one.line, "reason": one.reason, "trial": one.trial} for one in repaired.aside]
        data["repaired"] = {"kept": repaired.kept, "missing": repaired.missing, "aside": aside}
    return data


def _damage_notes(found: "RunDamage") -> list[str]:
    folder, notes = found.folder, []
    if found.plan:
        notes.append(visible(found.plan))
    if folder.has_torn_line():
        notes.append("the last line is incomplete: the process was killed while writing; no finished trial is lost")
    if not found.ended and not folder.is_being_written():
        notes.append(f"the last process did not finish; continue with `bakeoff resume {folder.label}`")
    if found.damaged:
        notes.append(
            "reports leave damaged lines out; `bakeoff resume` runs their trials again, and "
            f"`bakeoff runs check --repair {folder.label}` puts them aside"
        )
    if found.labels:
        notes.append(
            f"{found.labels} damaged lines of {folder.labels_file.name} are left out: those answers are labelled again"
        )
    if folder.signature_file.exists():
        notes.append(f"it is signed: `bakeoff runs verify {folder.label}` says whether anything changed since")
    if found.without_checksum:
        notes.append(
            f"{part_of(found.without_checksum, found.lines, 'line', 'has/have')} no checksum, because an older bakeoff "
            "wrote them: not every damage to them can be noticed"
        )
    return notes


def _print_repair(folder: "RunFolder", repaired: "Repair") -> None:
    from bakeoff.storage.repair import ASIDE

    console = out()
    if not repaired.changed:
        console.print("nothing had to be repaired")
        return
    console.print(f"repaired: {count_of(repaired.kept, 'line')} kept, {len(repaired.aside)} put aside in {ASIDE}")
    _print_first([f"line {one.line}{f' ({one.trial})' if one.trial else ''}: {one.reason}" for one in repaired.aside])
    if repaired.missing:
        console.print(f"  {count_of(repaired.missing, 'line')} cannot be found: the trials in them are lost")
    if repaired.plan_accepted:
        console.print("  plan.json is not as the run wrote it, and was accepted as it is")
    if repaired.aside or repaired.missing:
        console.print(Text(f"  run their trials again with `bakeoff resume {folder.label}`"))


@command(app, "sign")
def run_sign(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    key: Path = flag(..., "The private key, in PEM.", "--key", metavar="FILE"),
    new_key: bool = flag(False, "Make a new key pair: --key and, with .pub added to its name, the public key."),
) -> None:
    """Sign a run with an Ed25519 key, so that others notice any change to it.

    Example: bakeoff runs sign latest --key me.pem --new-key
    """

    from bakeoff.storage.run_folder import find_run
    from bakeoff.storage.signature import make_key, public_file, read_private_key, sign_run

    folder = find_run(results, run)
    if new_key:
        private = make_key(key)
        say(f"made {key}, which stays with you, and {public_file(key)}, which others need to verify")
    else:
        private = read_private_key(key)
    signed = sign_run(folder, private)
    files, where = count_of(len(signed.files), "file"), folder.signature_file.name
    out().print(Text(f"signed {folder.label}: {files} with key {signed.key_id} in {where}"))


@command(app, "verify")
def run_verify(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    key: Path | None = flag(None, "The public key that you trust, in PEM.", "--key", metavar="FILE"),
    regrade: bool = flag(False, "Score the recorded answers again instead, and compare the verdicts."),
    sandbox: Sandbox = "auto",
    trust: Trust = False,
    as_json: AsJson = False,
) -> int:
    """Verify the signature of a run, or with --regrade its verdicts. Exits with 1 if anything differs.

    Example: bakeoff runs verify latest --key me.pem.pub
    """

    from bakeoff.storage.run_folder import find_run
    from bakeoff.storage.signature import changes_since, key_id, read_public_key, read_signature

    folder = find_run(results, run)
    if regrade:
        return _regrade(folder, RunOptions(sandbox=sandbox), trust=trust, as_json=as_json)
    signed = read_signature(folder)
    if signed is None:
        raise RunFolderError(f"run {folder.label} is not signed: `bakeoff runs sign {folder.label} --key FILE` does it")
    problems = list(changes_since(folder, signed))
    wanted = read_public_key(key) if key is not None else None
    trusted = wanted is not None and wanted == signed.public_bytes
    if wanted is not None and not trusted:
        problems.insert(0, f"it was signed with key {signed.key_id}, and {key} is key {key_id(wanted)}")
    if as_json:
        print_json({"run": folder.name, "key": signed.key_id, "trusted": trusted, "problems": problems})
        return int(bool(problems))
    _print_first(problems)
    if problems:
        found = "this is not the run that was signed, or not by that key"
    elif trusted:
        found = f"signed with {key}, and nothing has changed since"
    else:
        found = f"nothing has changed since key {signed.key_id} signed it"
    out().print(Text(f"{folder.label}: {found}"))
    if not problems and not trusted:
        say("anyone can sign with a key of their own: name the key that you trust with --key, to know who signed it")
    return int(bool(problems))


def _regrade(folder: "RunFolder", options: RunOptions, *, trust: bool, as_json: bool) -> int:
    """Grade the answers again, and print the verdicts that differ."""

    from bakeoff.cli.run_plan import check_plan, trusted_plan
    from bakeoff.engine.regrade import regrade

    plan = trusted_plan(folder, trust=trust, doing="bakeoff runs verify --regrade")
    options = replace(options, rescore_only=True, rescore_all=True, replay="strict")
    resolved: ResolvedPlan | str
    try:
        checked = check_plan(plan, options)
        resolved, options = checked.resolved, checked.options
    except BakeoffError as error:  # its scorers are not here
        resolved = str(error)
    found = asyncio.run(regrade(folder, plan, resolved, options))
    code = FAILED if found.diverging else UNDECIDED if found.underived else PASSED
    if as_json:
        print_json({"run": folder.name, "outcome": found.outcome, "trials": plan.size, **asdict(found)})
        return code
    for one in found.diverging[:1]:
        for line in (one.trial, f"  recorded: {one.recorded}", f"  derived:  {one.derived}"):
            out().print(Text(visible(line, 500)))
    if found.underived:
        out().print(f"{count_of(len(found.underived), 'verdict')} cannot be derived here:")
        trials: dict[str, list[str]] = {}
        for name, why in found.underived.items():
            trials.setdefault(why, []).append(name)
        more = {why: f" and {len(names) - 1} more" if names[1:] else "" for why, names in trials.items()}
        _print_first([f"{names[0]}{more[why]}: {why}" for why, names in trials.items()])
    counts = f"{found.matched} of {count_of(plan.size, 'trial')} derived again"
    others = f", {len(found.diverging)} with another result" if found.diverging else ""
    out().print(Text(f"{folder.label}: {found.outcome}, {counts}{others}"))
    return code


@command(app, "upload")
def upload_run(*, run: RunName = "latest", results: Results = Path("results")) -> None:
    """Upload the missing parts of a run to an object store, such as after the store failed.

    Example: bakeoff runs upload latest --results s3://bucket/results
    """

    from bakeoff.storage import store_upload
    from bakeoff.storage.run_folder import RunFolder, find_run
    from bakeoff.storage.store_copy import store_of

    local = Path(run)
    folder = RunFolder(local.resolve()) if (local / "plan.json").is_file() else find_run(results, run)
    store = store_of(folder.path.parent.parent)
    if store is None:
        raise UsageError(f"{folder.path} belongs to no object store: name a run with --results s3://…")
    store_upload.upload_run(store, folder.path)
    say(f"uploaded {folder.name} to {store.address}")


@command(app, "delete")
def delete_run(*, run: RunName, results: Results = Path("results"), yes: Yes = False) -> None:
    """Delete a run and everything in its folder.

    Example: bakeoff runs delete 2026-11-16T09-30-00-demo --yes
    """

    from bakeoff.storage.run_folder import find_run
    from bakeoff.storage.store_copy import store_of

    folder = find_run(results, run)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"deleting {folder.name} needs confirmation: add --yes where there is no terminal")
        typer.confirm(f"Delete {folder.path} and everything in it?", abort=True)
    store = store_of(folder.path.parent.parent)
    folder.delete()
    deleted = folder.name if store is None else f"the copy of {folder.name}; {store.address} still has it"
    say(f"deleted {deleted}")
