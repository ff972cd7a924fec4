"""A run's folder, `results/runs/<UTC stamp>-<slug>/`: plan, journal, blobs, artefacts, logs."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff._kernel.choices import RESULTS
from bakeoff._kernel.files import (
    NoLocks,
    in_megabytes,
    lock_file,
    open_file,
    os_errors_explained,
    read_file,
    sync_folder,
    write_atomically,
)
from bakeoff._kernel.model import first_problem
from bakeoff._kernel.text import count_of
from bakeoff.errors import RunFolderError
from bakeoff.plan import PassRule, Plan, SubjectSpec, Trial
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.storage.journal import (
    SEAL,
    Entry,
    JournalMark,
    SpentTokens,
    intact_seal,
    plan_digest,
    read_journal_backwards,
    read_journal_with_places,
    read_seal,
    records_of,
    seal_plans,
)
from bakeoff.storage.journal_lines import (
    JOURNAL,
    Damage,
    end_of_lines,
    is_unsealed,
    line_end,
    lines_forwards,
    note_damage,
)
from bakeoff.storage.own_runs import remember
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.store_copy import (
    fetch_run,
    is_store_address,
    results_folder,
    split_run_address,
    store_of,
    stored_runs,
)

OLDER = ".bakeoff"
"""The folder beside the results in which older versions of the pytest plugin kept runs. Recordings are still there."""

_PROJECT_ENDS = (".git", "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")


def folders_of_runs(results: Path) -> Iterator[Path]:
    """Yield the folders that can hold runs. New runs go into the first."""
    yield results / "runs"
    if results.name == RESULTS:
        yield results.parent / OLDER / "runs"


def nearest_results(results: Path = Path(RESULTS)) -> Path:
    """Return this folder if it holds runs, or else the nearest parent in the project that does."""
    here = Path.cwd()
    above = [here, *here.parents]
    ends = [place for place, folder in enumerate(above) if any((folder / name).exists() for name in _PROJECT_ENDS)]
    for folder in above[: ends[0] + 1 if ends else 1]:
        found = results if folder == here else folder / results
        if any(place.is_dir() for place in folders_of_runs(found)):
            return found
    return results


LATEST = "latest"
MAX_TRIALS = 10**9
"""The largest plan whose records can be read: reading needs one bit of memory per trial."""
MAX_PLAN_SIZE = 256 << 20
_PLAN_TRIES = 3
_SEGMENTS = "segments"  # older versions kept parts of long journals there
_STAMP_LENGTH = len("2026-11-16T09-30-00")
_KEPT_BYTES = 1 << 24  # larger finished runs are read again each time


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run on disk."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def title(self) -> str:
        """Return the part of the name that is made of the title of its plan."""
        return self.name[_STAMP_LENGTH + 1 :]

    @property
    def label(self) -> str:
        """Return the name for messages, with bytes that are not UTF-8 escaped."""
        return self.path.name.encode(errors="backslashreplace").decode()

    @property
    def plan_file(self) -> Path:
        return self.path / "plan.json"

    @property
    def journal_file(self) -> Path:
        return self.path / JOURNAL

    @property
    def seal_file(self) -> Path:
        return self.path / SEAL

    @property
    def signature_file(self) -> Path:
        """Return the file of `bakeoff runs sign`. It exists only if the run was signed."""
        return self.path / "signature.json"

    @property
    def labels_file(self) -> Path:
        """Return the file of `bakeoff label`. It exists only if the run was labelled."""
        return self.path / "labels.jsonl"

    @property
    def pictures(self) -> Path:
        """Return the folder of pictures. It exists only if pictures were taken."""
        return self.path / "pictures"

    @property
    def started(self) -> bool:
        """Return True if there is a journal. Raise RunFolderError if it is not a regular file."""
        if self.journal_file.is_file():
            return True
        if self.journal_file.exists():
            raise RunFolderError(f"{self.journal_file} cannot be read: it is not a file")
        return False

    def check_version(self) -> None:
        """Raise RunFolderError if an older version has split the journal into several files."""
        if os.path.lexists(self.path / _SEGMENTS):
            raise RunFolderError(
                f"run {self.label} cannot be read: an older version divided its journal ({self.path / _SEGMENTS}); "
                "docs/reference/run-folder.md has the command that joins its parts"
            )

    def size(self) -> int:
        """Return the size of journal and blobs in bytes."""
        files = (self.journal_file, *(self.path / "blobs").rglob("*"))
        return sum(file.stat().st_size for file in files if file.is_file())

    def write_plan(self, plan: Plan, redactor: Redactor, *, made_here: bool = True) -> None:
        """Write the plan without secrets, and seal it. The seal always matches, even after a kill.

        With `made_here`, this user can run it again without being asked.
        """
        data = plan.model_dump_json(exclude_defaults=True, indent=1).encode()
        if redactor.finds(data):
            data = redactor.model(plan).model_dump_json(exclude_defaults=True, indent=1).encode()
        if len(data) > MAX_PLAN_SIZE:
            raise RunFolderError(
                f"{self.plan_file} would be larger than {in_megabytes(MAX_PLAN_SIZE)}: make several runs of fewer cases"
            )
        before = None
        with suppress(OSError):
            before = read_file(self.plan_file, MAX_PLAN_SIZE)
        if made_here:
            remember(self.path, data, instead_of=before)  # first of all, in case the run is killed
        now = plan_digest(data)
        with os_errors_explained(self.plan_file, "written"):
            if before == data and (seal := read_seal(self.path)) is not None and seal.plans == (now,):
                return
            seal_plans(self.path, *(() if before is None else (plan_digest(before),)), now)
            write_atomically(self.plan_file, data)
            seal_plans(self.path, now)

    def read_plan(self) -> Plan:
        """Return the plan. Raise RunFolderError if it is missing, unreadable or changed after sealing."""
        return self.parse_plan(self.read_plan_bytes())

    def read_plan_bytes(self) -> bytes:
        """Return the plan's file content. Raise RunFolderError if it is not as sealed."""
        for _ in range(_PLAN_TRIES):  # a process may just be replacing plan and seal
            seal = intact_seal(self.path)
            if not self.plan_file.exists():
                raise RunFolderError(f"{self.path} is not a run folder: it has no {self.plan_file.name}")
            with os_errors_explained(self.plan_file, "read"):
                data = read_file(self.plan_file, MAX_PLAN_SIZE)
            if seal is None or not seal.plans or plan_digest(data) in seal.plans:
                return data
        raise RunFolderError(
            f"{self.plan_file} was changed after the run wrote it: restore it, or accept it as it is with "
            f"`bakeoff runs check --repair {self.label}`"
        )

    def parse_plan(self, data: bytes) -> Plan:
        """Parse the plan from its file content."""
        self.check_version()
        try:
            return in_current_form(Plan.model_validate_json(data))
        except ValidationError as error:
            raise RunFolderError(f"{self.plan_file} cannot be read: {first_problem(error)}") from error
        except (AttributeError, TypeError, KeyError) as error:
            raise RunFolderError(f"{self.plan_file} cannot be read: an older version wrote no such settings") from error

    def plan_as_it_is(self) -> tuple[str, bool]:
        """Return the digest of the plan, and True if it differs from the sealed one.

        Raise RunFolderError if it is not a plan.
        """
        with os_errors_explained(self.plan_file, "read"):
            data = read_file(self.plan_file, MAX_PLAN_SIZE)
        try:
            Plan.model_validate_json(data)
        except ValidationError as error:
            raise RunFolderError(f"{self.plan_file} cannot be read: {first_problem(error)}") from error
        seal, digest = intact_seal(self.path), plan_digest(data)
        return digest, seal is not None and bool(seal.plans) and digest not in seal.plans

    def sealed_lines(self) -> int:
        """Return how many lines the journal had when sealed; 0 if unknown."""
        seal = intact_seal(self.path)
        return seal.journal.lines if seal is not None else 0

    def outer_damage(self) -> Iterator[Damage]:
        """Yield damage around the journal: a damaged or missing seal, or a missing journal."""
        try:
            seal = read_seal(self.path)
        except RunFolderError as error:
            yield Damage(0, str(error))
            return
        if seal is None and self.started:
            with open_file(self.journal_file) as journal:
                _, first = next(lines_forwards(journal), (0, None))
            if first is not None and line_end(first) is not None:  # such a journal must have a seal
                yield Damage(0, "the seal is gone: `bakeoff runs check --repair` makes a new one of what is there")
        elif seal is not None and seal.journal.lines and not self.started:
            yield Damage(0, f"the journal is gone: it had {count_of(seal.journal.lines, 'line')} when it was sealed")

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the journal, if the run ever started, then damage around it."""
        return (entry for _, entry in self.entries_with_places())

    def entries_with_places(self) -> Iterator[tuple[int, Entry]]:
        """Yield the entries of the journal with their byte offsets."""
        if self.started:
            yield from read_journal_with_places(self.journal_file)
        yield from ((0, damage) for damage in self.outer_damage())

    def newest_first(self) -> Iterator[Entry]:
        """Yield the entries of the journal from last to first, then damage around it."""
        if self.started:
            yield from read_journal_backwards(self.journal_file)
        yield from self.outer_damage()

    def latest_records(self, plan: Plan, damaged: list[Damage] | None = None) -> Iterator[Record]:
        """Yield the valid record of each finished trial of the plan, newest first.

        Trials without scores of the plan's current scorers are left out, so that scores of
        different scorers are never mixed. Unreadable lines are added to `damaged`.
        """
        if plan.size > MAX_TRIALS:
            raise RunFolderError(f"{self.plan_file} has {plan.size:,} trials: at most {MAX_TRIALS:,} can be read")
        seen, lines = bytearray(plan.size), 0
        for entry in self.newest_first():
            if isinstance(entry, Damage):
                lines += 1
                if damaged is not None:
                    damaged.append(entry)
            elif isinstance(entry, Record):
                trial = entry.trial_in(plan)
                if trial is not None and not seen[trial.index]:
                    seen[trial.index] = True
                    if not entry.needs_score(trial):
                        yield entry
        note_damage(self.label, lines)

    def latest_record(self, trial: Trial) -> Record | None:
        """Return a trial's valid record, as in `latest_records`, but read little of the journal."""
        if not self.started:
            return None
        name = trial.case.id, trial.subject.name, trial.round
        for record in records_of(self.journal_file, trial.attempt_key):
            if (record.case, record.subject, record.round) == name:
                return None if record.needs_score(trial) else record
        return None

    def spent(self) -> Usage:
        """Return all spending of the run, including killed trials without a record."""
        return next((entry.total for entry in self.newest_first() if isinstance(entry, SpentTokens)), NO_USAGE)

    def beginning(self) -> Mapping[str, Any]:
        """Return the facts that the run's first process wrote at the start."""
        first = next(self.entries(), None)
        return first.facts if isinstance(first, JournalMark) else {}

    def count_checksums(self) -> tuple[int, int]:
        """Return the number of lines in the journal, and how many have no checksum."""
        if not self.started:
            return 0, 0
        lines = old = 0
        with open_file(self.journal_file) as journal:
            for _, raw in lines_forwards(journal):
                lines += 1
                old += raw is not None and line_end(raw) is None and is_unsealed(raw)
        return lines, old

    def has_torn_line(self) -> bool:
        """Return True if the journal ends in the middle of a line."""
        if not self.started:
            return False
        with open_file(self.journal_file) as journal:
            return end_of_lines(journal.fileno()) < os.fstat(journal.fileno()).st_size

    def is_being_written(self) -> bool:
        """Return True if a process is writing the journal now."""
        if not self.started:
            return False
        while True:
            with (
                suppress(NoLocks),  # without locks, nothing can be written either
                os_errors_explained(self.journal_file, "read"),
                open_file(self.journal_file) as file,
            ):
                free = lock_file(file.fileno(), self.journal_file, shared=True)
                if free and not os.path.samestat(os.fstat(file.fileno()), self.journal_file.stat()):
                    continue  # a repair has just replaced it
                return not free
            return False

    def delete(self) -> None:
        """Delete the folder, unless a process is writing it or it has no plan."""
        if self.is_being_written():
            raise RunFolderError(f"run {self.name} is being written: stop it before you delete it")
        self.plan_as_it_is()  # a folder without a plan is not a run
        with os_errors_explained(self.path, "deleted"):
            shutil.rmtree(self.path)


@dataclass(frozen=True)
class FinishedRunFolder(RunFolder):
    """A finished run. The journal of a small run is read only once and kept in memory."""

    @cached_property
    def _kept(self) -> tuple[Entry, ...] | None:
        return None if self.size() > _KEPT_BYTES else tuple(super().newest_first())

    def newest_first(self) -> Iterator[Entry]:
        return super().newest_first() if self._kept is None else iter(self._kept)


def new_run_folder(results: Path, title: str) -> RunFolder:
    """Make a new run folder. Its name is unique, even in the same second.

    `title` becomes part of the name. For the address of an object store, the folder is among the
    local copies of its runs. Raise `RunFolderError` if the folder cannot be made.
    """
    results = results_folder(results)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "run"
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    for number in range(1, 1000):
        path = results / "runs" / (f"{stamp}-{slug}" if number == 1 else f"{stamp}-{slug}-{number}")
        try:
            path.mkdir(parents=True, mode=0o755)
            sync_folder(path.parent)
            sync_folder(path.parent.parent)
        except FileExistsError as error:
            if not path.is_dir():  # a parent is not a folder, for example a dangling link
                raise RunFolderError(f"{path} cannot be made: {error.filename} is in the way") from error
        except OSError as error:
            raise RunFolderError(
                f"{path} cannot be made: {error.strerror}; choose another folder for results"
            ) from error
        else:
            return RunFolder(path)
    raise RunFolderError(f"1000 runs named {slug} started in one second under {results}")


def made_run_folder(path: Path) -> RunFolder:
    """Return the run in a folder. Make a missing folder, or raise RunFolderError."""
    with os_errors_explained(path, "made", hint="choose another folder for the run"):
        path.mkdir(parents=True, exist_ok=True)
    return RunFolder(path)


def run_folders(results: Path) -> list[RunFolder]:
    """Return all runs, oldest first. Folders without a plan are not runs."""
    paths = [path for runs in folders_of_runs(results) if runs.is_dir() for path in runs.iterdir()]
    found = [RunFolder(path) for path in sorted(paths, key=lambda path: path.name) if (path / "plan.json").is_file()]
    seconds = Counter(folder.name[:_STAMP_LENGTH] for folder in found)

    def order(folder: RunFolder) -> tuple[str, float]:
        stamp = folder.name[:_STAMP_LENGTH]
        if seconds[stamp] == 1:  # read the journal only if names do not show the order
            return stamp, 0.0
        began = folder.beginning().get("time")
        return stamp, began if isinstance(began, float) else float("inf")  # an unstarted run is the newest

    return sorted(found, key=order)


def find_run(results: Path, name: str) -> RunFolder:
    """Return the run with this folder or name, or the newest run for `latest`.

    `results` may be the address of an object store, and `name` that of a run in a store. New parts
    are then fetched first. If there is no such run, raise `RunFolderError` with similar names.
    """
    results = results_folder(results)
    if is_store_address(name):
        results, name = split_run_address(name)
    if (store := store_of(results)) is not None:
        wanted = stored_runs(store)[-1:] if name == LATEST else [name]
        for one in wanted:
            fetch_run(store, results, one)
    folders = run_folders(results)
    if name == LATEST:
        if not folders:
            way_out = "pytest keeps them in `results` now" if results.name == OLDER else "`bakeoff demo` makes one"
            raise RunFolderError(f"there are no runs under {place_of_runs(results)} yet: {way_out}")
        return folders[-1]
    for path in (*(place / name for place in folders_of_runs(results)), Path(name).resolve()):
        if (path / "plan.json").is_file():
            return RunFolder(path)
    near = [folder.name for folder in folders if name in folder.name]
    hint = f"; did you mean {', '.join(near[-3:])}?" if near else "; `bakeoff runs list` shows all runs"
    if Path(name).exists():
        hint = "; if it is a log of another tool, `bakeoff import` makes a run of it"
    raise RunFolderError(f"no run {json.dumps(name)} under {place_of_runs(results)}{hint}")


def place_of_runs(results: Path) -> str:
    """Return the folder of the runs or, for local copies, the address of the store."""
    store = store_of(results)
    return str(results / "runs") if store is None else f"{store.address}/runs"


_OLD_DOORS = {"exercises": "agents"}
_KEPT = ("suiteRule", "concurrencyLimit", "serverScope", "retryConfig", "gradingPrompt")
_PROVIDER_OPTIONS = {"target": "target", "baseUrl": "base_url", "apiKeyVariable": "key_variable", "options": "options"}


def in_current_form(plan: Plan) -> Plan:
    """Return a plan, perhaps of an older version, in the form of this version.

    Old plans use the former name of the agents door. Old plans of MCP suites contain the whole
    configuration, and their cases have no pass rules.
    """
    if plan.door in _OLD_DOORS:
        name = _OLD_DOORS.get(plan.name, plan.name)  # since the history of runs is found by name
        return plan.model_copy(update={"door": _OLD_DOORS[plan.door], "name": name})
    config: Any = plan.settings.get("config")
    if plan.door != "mcp" or not isinstance(config, dict):
        return plan
    threshold = config.get("passThreshold")
    threshold = 1.0 if threshold is None else threshold
    rule = PassRule(gate="share", share=threshold)
    settings = {
        **{name: value for name, value in plan.settings.items() if name != "config"},
        **{name: config[name] for name in _KEPT if name in config},
        "servers": config.get("mcpServers"),
        "threshold": threshold,
        "judge": None,
    }
    if config.get("judge"):
        given: dict[str, dict[str, Any]] = config.get("providers", {})
        providers = {
            name: {new: provider[old] for old, new in _PROVIDER_OPTIONS.items() if provider.get(old)}
            for name, provider in given.items()
        }
        options = {"model": config["judge"], "temperature": 0, "max_tokens": 1024, "timeout": 60}
        options |= {"providers": providers} if providers else {}
        settings["judge"] = SubjectSpec(kind="model", name="judge", options=options).model_dump(mode="json")
    cases = tuple(case.model_copy(update={"pass_rule": rule}) for case in plan.cases)
    return plan.model_copy(update={"settings": settings, "cases": cases})
