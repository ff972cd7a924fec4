"""Upload a run to an object store during the run, in a thread.

The run never waits for the store, and its local folder is always complete. If the store fails, the
upload is retried after the next interval. At its end, the run tells what is missing.

A lease lets only one process write a run: objects `lease/000001`, `lease/000002`, … beside the
journal. The writer owns and renews the highest one. After it is released or expires, another
process takes over by creating the next object, which a store allows only once. Pieces of the
journal that the old writer still uploads have its number and are ignored. Plan, seal, labels and
signature have no number, so a writer looks for a higher lease just before writing them.
"""

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from bakeoff._kernel.files import MAX_FILE_SIZE, open_file, read_file
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import RunFolderError
from bakeoff.storage.journal_lines import JOURNAL, end_of_lines
from bakeoff.storage.labels import append_missing
from bakeoff.storage.object_store import ObjectStore, StoreError
from bakeoff.storage.run_folder import MAX_PLAN_SIZE
from bakeoff.storage.store_copy import (
    JournalPiece,
    changing_files,
    fetch_files,
    in_groups,
    journal_pieces,
    named_blobs,
    sizes_of,
    unchanging_files,
)

MAX_LEASE_SECONDS = 60.0
SHORTEST_LEASE_SECONDS = 5.0
_INTERVALS = 6
_NUMBER = re.compile(r"\d{6}")
_HIGHEST = 999_999


def lease_seconds(interval: float) -> float:
    """Return how many seconds after its last renewal a lease can be taken over.

    `interval` is the time between uploads. Clocks of machines must differ by less than the result.
    """
    return min(MAX_LEASE_SECONDS, max(SHORTEST_LEASE_SECONDS, _INTERVALS * interval))


class LeaseLost(StoreError):
    """Raised when another process has taken over the run."""


class _Holder(FrozenModel):
    owner: str
    host: str
    process: int
    expires: float  # seconds since 1970; 0 after release


@dataclass(slots=True)
class StoreLease:
    """The right to write a run. Make it with `acquire`."""

    store: ObjectStore
    run: str  # the key of the run
    number: int
    seconds: float
    clock: Callable[[], float] = time.time
    _owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    _renewed: float = 0.0

    @classmethod
    def acquire(
        cls,
        store: ObjectStore,
        run: str,
        seconds: float = MAX_LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> "StoreLease":
        """Take the lease of a run. Raise StoreError if another process holds it."""
        highest = _highest(store, run)
        if highest and (holder := _holder(store, run, highest)) is not None and holder.expires > clock():
            left = holder.expires - clock()
            raise StoreError(
                f"{store.address}/{run} is being written by process {holder.process} on {holder.host}: wait for it, or "
                f"stop it; if it was killed, its lease expires in {left:.0f} seconds"
            )
        if highest >= _HIGHEST:
            raise StoreError(f"{store.address}/{run}/lease/{highest} is not of Bakeoff: delete it, or use another run")
        lease = cls(store, run, highest + 1, seconds, clock)
        store.create(lease._key, lease._content(clock() + seconds))
        # A library's own retry is refused too, and some servers refuse nothing.
        if (made := _holder(store, run, lease.number)) is None or made.owner != lease._owner:
            raise StoreError(f"{store.address}/{run} was taken by another process just now: wait for it")
        lease._renewed = clock()
        lease.check()
        return lease

    def renew(self) -> None:
        """Renew the lease after a third of its time. Raise LeaseLost if another process took it."""
        if self.clock() - self._renewed < self.seconds / 3:
            return
        self.check()
        self.store.write(self._key, self._content(self.clock() + self.seconds))
        self._renewed = self.clock()

    def check(self) -> None:
        """Raise LeaseLost if another process has taken over the run."""
        holder = _holder(self.store, self.run, self.number)
        replaced = holder is not None and holder.owner != self._owner
        if replaced or _highest(self.store, self.run) > self.number:
            raise LeaseLost(f"another process has taken over {self.store.address}/{self.run}: this one stops")

    def release(self) -> None:
        """Release the lease, so that others can take it at once."""
        self.store.write(self._key, self._content(0.0))

    @property
    def _key(self) -> str:
        return f"{self.run}/lease/{self.number:06d}"

    def _content(self, expires: float) -> bytes:
        holder = _Holder(owner=self._owner, host=socket.gethostname()[:100], process=os.getpid(), expires=expires)
        return holder.model_dump_json().encode()


def _highest(store: ObjectStore, run: str) -> int:
    names = (key.rpartition("/")[2] for key in store.sizes(f"{run}/lease"))
    return max((int(name) for name in names if _NUMBER.fullmatch(name)), default=0)


def _holder(store: ObjectStore, run: str, number: int) -> _Holder | None:
    try:
        return _Holder.model_validate_json(store.read(f"{run}/lease/{number:06d}") or b"")
    except ValidationError:  # not written by us, so it blocks nobody
        return None


PIECE_BYTES = 4 << 20
"""The size of a piece of the journal. A growing piece is written again until it is larger; then the next one begins."""


def upload_run(store: ObjectStore, folder: Path, *, whole: bool = False) -> None:
    """Upload the missing parts of a finished run. Raise RunFolderError if that fails.

    With `whole`, for a repaired journal, replace the store's journal.
    """
    with RunUpload(store, folder, whole=whole) as upload:
        pass
    if upload.problem is not None:
        raise RunFolderError(upload.problem)


class RunUpload(AbstractContextManager["RunUpload"]):
    """Uploads a run every few seconds during the block, and once more at its end.

    Entering takes the lease, fetches trials that another process has added, and uploads what is
    there, so that a read-only store is noticed before the first trial. Read the run only
    afterwards. A copy that diverged from the store is refused. If another process takes over the
    run, `on_lost` is called in the thread.
    """

    def __init__(
        self,
        store: ObjectStore,
        folder: Path,
        interval: float = 10.0,
        on_lost: Callable[[], object] = lambda: None,
        *,
        whole: bool = False,
    ) -> None:
        self._failure: str | None = None  # why the last upload failed
        self._loss: str | None = None  # a sentence if another process took over the run
        self._store = store
        self._folder = folder
        self._run = f"runs/{folder.name}"
        self._interval = interval
        self._on_lost = on_lost
        self._whole = whole  # upload the whole journal, because it was repaired
        self._ended, self._uploaded = threading.Event(), threading.Event()
        self._uploading = threading.Thread(target=self._repeat, name="upload", daemon=True)
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._stored: dict[str, int] = {}  # files in the store and their sizes
        self._content: dict[str, bytes] = {}  # content of small files that may change
        self._searched: int | None = None  # how much of the journal was searched for blobs
        self._last = JournalPiece(0, 0, 0)  # the piece of the journal that still grows

    def __enter__(self) -> "RunUpload":
        self._lease = StoreLease.acquire(self._store, self._run, lease_seconds(self._interval))
        self._renewing.start()
        try:
            self._begin()
        except (RunFolderError, OSError):
            self._stop_renewing()
            with suppress(StoreError):
                self._lease.release()
            raise
        self._uploading.start()
        return self

    def _begin(self) -> None:
        self._stored = sizes_of(self._store, self._run)
        if not self._whole:
            fetch_files(self._store, self._folder, self._stored)
        if "labels.jsonl" in self._stored:  # join the labels of several machines
            append_missing(self._folder / "labels.jsonl", self._store.read(f"{self._run}/labels.jsonl") or b"")
        own = [file for file in changing_files(self._folder) if file in self._stored]
        same = [file for file in own if self._stored[file] == (self._folder / file).stat().st_size <= MAX_PLAN_SIZE]
        found = self._store.read_some([f"{self._run}/{file}" for file in same]) if same else {}
        self._content = {key.removeprefix(f"{self._run}/"): data for key, data in found.items()}
        end = 0 if self._whole else self._journal_end()
        pieces = [piece for piece in journal_pieces(self._stored) if piece.begin < end]
        last = pieces[-1] if pieces else JournalPiece(0, 0, 0)
        # Write it again with this lease when lines are added, since its writer may still be active.
        self._last = JournalPiece(last.begin, self._lease.number, last.size if last.end == end else 0)
        self._upload()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._uploading.join()
        self._try(self._upload)
        self._stop_renewing()
        if self.problem is None:
            self._try(self._lease.release)

    @property
    def lost(self) -> bool:
        """Return True if another process has taken over the run."""
        return self._loss is not None

    @property
    def problem(self) -> str | None:
        """Return why the store does not have the whole run; None if it has."""
        return self._loss or self._failure

    def _repeat(self) -> None:
        while not self._ended.wait(self._interval):
            self._try(self._upload)

    def _renew(self) -> None:
        """Renew the lease in a separate thread, because one upload may outlast the lease."""
        while not self._uploaded.wait(self._lease.seconds / 4):
            with suppress(StoreError):  # the next upload reports it
                self._unless_lost(self._lease.renew)

    def _stop_renewing(self) -> None:
        self._uploaded.set()
        self._renewing.join()

    def _try(self, work: Callable[[], None]) -> None:
        try:
            self._unless_lost(work)
            self._failure = None
        except (RunFolderError, OSError) as error:  # from the store or the files of the run
            self._failure = str(error)

    def _unless_lost(self, work: Callable[[], None]) -> None:
        if self.lost:
            return
        try:
            work()
        except LeaseLost as error:
            self._loss = str(error)
            self._on_lost()

    def _upload(self) -> None:
        self._lease.check()
        journal_end = self._journal_end()  # later lines may need blobs not uploaded below
        changing = list(changing_files(self._folder))
        if self._searched is None:
            self._put_unchanging(unchanging_files(self._folder, "blobs"))
        elif journal_end > self._searched:
            self._put_unchanging(named_blobs(self._folder, self._searched, journal_end))
        self._searched = journal_end
        self._put_unchanging(unchanging_files(self._folder, "pictures"))
        self._put_journal(journal_end)
        for file in changing:
            data = read_file(self._folder / file, MAX_PLAN_SIZE)
            if self._content.get(file) != data:
                self._lease.check()  # their names contain no lease number
                self._store.write(f"{self._run}/{file}", data)
                self._content[file] = data

    def _stop_if_lost(self) -> None:
        if self.lost:
            raise LeaseLost(self._loss)

    def _put_unchanging(self, files: Iterable[str]) -> None:
        sizes = {file: (self._folder / file).stat().st_size for file in files if file not in self._stored}
        for group in in_groups(list(sizes), sizes):
            self._stop_if_lost()
            contents = {f"{self._run}/{file}": read_file(self._folder / file, MAX_FILE_SIZE) for file in group}
            self._store.write_some(contents)
            self._stored.update({file: sizes[file] for file in group})

    def _journal_end(self) -> int:
        try:
            with open_file(self._folder / JOURNAL) as journal:
                return end_of_lines(journal.fileno())
        except FileNotFoundError:
            return 0

    def _put_journal(self, end: int) -> None:
        """Upload the piece that has grown, then new pieces."""
        while end > self._last.end:
            begin = self._last.begin if self._last.size < PIECE_BYTES else self._last.end
            with open_file(self._folder / JOURNAL) as journal:
                journal.seek(begin)
                data = journal.read(min(end - begin, PIECE_BYTES))
            self._stop_if_lost()
            piece = JournalPiece(begin, self._last.lease, len(data))
            self._store.write(f"{self._run}/{piece.name}", data)
            self._last = piece
