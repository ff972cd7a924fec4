"""Damage the files of a run at random, and count how often a reader shows other results without a word.

`campaign(folder, count, seed)` needs nothing but an empty folder: the tests call it with a few hundred damages, and a
long campaign with thousands.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from bakeoff.engine.run import read_progress
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, Trial
from bakeoff.record import Failure, Phase, Record, Score, Transcript, Usage
from bakeoff.report.readers import RunFolderReader
from bakeoff.report.render.html.run_data import read_run
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder

Change = Callable[[RunFolder, Random], None]


@dataclass
class Outcome:
    """The number of damages of each kind that were reported or harmless, and the damages that were neither."""

    reported: Counter[str] = field(default_factory=Counter)
    harmless: Counter[str] = field(default_factory=Counter)
    silent: list[str] = field(default_factory=list)


def campaign(folder: Path, count: int, seed: int = 0, kinds: Sequence[str] = ()) -> Outcome:
    """Damage a run `count` times in the ways named, by default in every way, and read it with every reader."""
    random, outcome = Random(seed), Outcome()
    whole = make_run(folder / "whole")
    before = {name: read(whole)[0] for name, read in READERS.items()}
    for number in range(count):
        name = random.choice(kinds or [*CHANGES, *["flip a bit"] * len(CHANGES)])  # half of all are flipped bits
        damaged = RunFolder(folder / "damaged")
        shutil.copytree(whole.path, damaged.path)
        CHANGES[name](damaged, random)
        for reader, read in READERS.items():
            result, reported = read(damaged)
            if reported:
                outcome.reported[name] += 1
            elif result == before[reader]:
                outcome.harmless[name] += 1
            else:
                outcome.silent.append(f"{reader} after {name!r}, number {number} of seed {seed}")
        shutil.rmtree(damaged.path)
    return outcome


def make_run(path: Path) -> RunFolder:
    """Make a run of two processes with a retried trial, spending, long texts, and an end."""
    plan = Plan(
        name="damaged",
        cases=tuple(Case(id=f"case-{number}", prompt=f"say {number}", expected="x") for number in range(4)),
        subjects=(SubjectSpec(kind="nop", name="one"), SubjectSpec(kind="nop", name="two")),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=2,
    )
    path.mkdir(parents=True)
    folder = RunFolder(path)
    trials = list(plan.trials())
    folder.write_plan(plan, Redactor({}))
    for number, part in enumerate((trials[:9], trials[8:])):  # the trial of both parts was lost, and retried
        with JournalWriter(folder.journal_file, Redactor({})) as journal:
            journal.append("start", bakeoff="0", time=float(number), sandbox="process")
            for trial in part:
                journal.append_record(_record(trial, lost=number == 0 and trial is part[-1]))
                usage = Usage(input=3, cost=0.25).model_dump(exclude_defaults=True)
                total = Usage(input=3, cost=0.25 * trial.index).model_dump(exclude_defaults=True)
                journal.append("usage", trial=trial.attempt_key, usage=usage, total=total)
                journal.flush()
            journal.append("end", reason="finished", time=number + 0.5)
    return folder


def _record(trial: Trial, *, lost: bool) -> Record:
    failure = Failure(kind="infra", type="Lost", message="gone") if lost else None
    return Record(
        case=trial.case.id,
        subject=trial.subject.name,
        round=trial.round,
        attempt_key=trial.attempt_key,
        score_key=trial.score_key,
        started=1.0 + trial.index,
        threshold=0.5,
        attempt=Phase(seconds=0.125, failure=failure),
        transcript=Transcript(output=("long " * 4000 if trial.index % 5 == 0 else "short") + str(trial.index)),
        scores=() if lost else (Score(name="exact", value=trial.index % 2),),
        spent=Usage(input=3, cost=0.25),
    )


# --- what happens to files ------------------------------------------------------------------------------------------


def _any_file(folder: RunFolder, random: Random) -> Path:
    journal = [folder.journal_file] * 6  # most damage is to the files with the results
    files = [file for file in folder.path.rglob("*") if file.is_file()]
    return random.choice(sorted(files) + journal)


def _flip(folder: RunFolder, random: Random) -> None:
    path = _any_file(folder, random)
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


def _delete_bytes(folder: RunFolder, random: Random) -> None:
    path = _any_file(folder, random)
    data = path.read_bytes()
    place = random.randrange(len(data))
    path.write_bytes(data[:place] + data[place + random.randint(1, 40) :])


def _insert_bytes(folder: RunFolder, random: Random) -> None:
    path = _any_file(folder, random)
    data = path.read_bytes()
    place = random.randrange(len(data) + 1)
    path.write_bytes(data[:place] + random.choice([b"\n", b"\0" * 512, b" ", random.randbytes(9)]) + data[place:])


def _zero_block(folder: RunFolder, random: Random) -> None:
    path = _any_file(folder, random)
    data = bytearray(path.read_bytes())
    place = random.randrange(0, len(data), 512)
    data[place : place + 512] = bytes(len(data[place : place + 512]))
    path.write_bytes(data)


def _truncate(folder: RunFolder, random: Random) -> None:
    path = _any_file(folder, random)
    os.truncate(path, random.randrange(path.stat().st_size))


def _with_lines(change: Callable[[list[bytes], Random], Any]) -> Change:
    def changed(folder: RunFolder, random: Random) -> None:
        lines = folder.journal_file.read_bytes().splitlines(keepends=True)
        change(lines, random)
        folder.journal_file.write_bytes(b"".join(lines))

    return changed


def _swap(lines: list[bytes], random: Random) -> None:
    one, other = random.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]


def _double(lines: list[bytes], random: Random) -> None:
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))


def _remove(lines: list[bytes], random: Random) -> None:
    for _ in range(random.choice([1, 1, 2, 5])):
        lines.pop(random.randrange(len(lines)))


def _cut(lines: list[bytes], random: Random) -> None:
    del lines[random.randrange(len(lines)) :]


def _replace(lines: list[bytes], random: Random) -> None:
    """Put a line of another run in place of one: its number and checksum are right."""
    from bakeoff.storage.journal_lines import Totals, line_end, seal_line

    place = random.randrange(len(lines))
    found = line_end(lines[place])
    assert found is not None
    body = lines[place][: found.begin].replace(b'"seconds":0.125', b'"seconds":9.125').replace(b'"cost"', b'"input"')
    lines[place] = seal_line(body, found.number, Totals())


def _remove_file(folder: RunFolder, random: Random) -> None:
    path = random.choice([folder.journal_file, *sorted(file for file in folder.path.rglob("*") if file.is_file())])
    path.unlink()


def _pipe(folder: RunFolder, random: Random) -> None:
    path = _any_file(folder, random)
    path.unlink()
    match random.choice(["pipe", "folder", "device"]):
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("/dev/zero")


CHANGES: dict[str, Change] = {
    "flip a bit": _flip,
    "delete bytes": _delete_bytes,
    "insert bytes": _insert_bytes,
    "zero a block": _zero_block,
    "truncate a file": _truncate,
    "swap lines": _with_lines(_swap),
    "double a line": _with_lines(_double),
    "remove lines": _with_lines(_remove),
    "cut off the last lines": _with_lines(_cut),
    "replace a line": _with_lines(_replace),
    "empty the journal": lambda folder, _: os.truncate(folder.journal_file, 0),
    "remove a file": _remove_file,
    "put a pipe, folder or device in place of a file": _pipe,
}


# --- what readers say -----------------------------------------------------------------------------------------------

Read = Callable[[RunFolder], tuple[object, bool]]
"""Return the results that a reader shows, and whether it reports damage."""


def _refused(read: Read) -> Read:
    def reading(folder: RunFolder) -> tuple[object, bool]:
        try:
            return read(folder)
        except RunFolderError:
            return None, True

    return reading


def _latest(folder: RunFolder) -> tuple[object, bool]:
    damaged: list[Damage] = []
    records = list(folder.latest_records(folder.read_plan(), damaged))
    return records, bool(damaged)


def _entries(folder: RunFolder) -> tuple[object, bool]:
    folder.read_plan()
    entries = list(folder.entries())
    return entries, any(isinstance(entry, Damage) for entry in entries)


def _progress(folder: RunFolder) -> tuple[object, bool]:
    progress = read_progress(folder, folder.read_plan(), RunOptions())
    found = [progress.finished[index] for index in range(16)], progress.spent, progress.spent_on
    return found, bool(progress.damaged)


def _compared(folder: RunFolder) -> tuple[object, bool]:
    reader = RunFolderReader()
    found = reader.describe(folder.path).plan, list(reader.read(folder.path))
    return found, bool(reader.circumstances(folder.path).damaged)


def _page(folder: RunFolder) -> tuple[object, bool]:
    data = read_run(folder, lambda *_: None)
    return (data.summary, data.marks, data.state), bool(data.damaged)


READERS: dict[str, Read] = {
    name: _refused(read)
    for name, read in {
        "runs show": _latest,
        "runs check": _entries,
        "resume": _progress,
        "compare and export": _compared,
        "report and viewer": _page,
    }.items()
}
