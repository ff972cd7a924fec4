"""Keep local copies of runs that live in an object store.

For each store address, a folder in the user's state folder holds copies of the results; its
`store.json` has the address. Runs are written there as usual, and uploaded during the run
(`store_upload`). Reading a run first fetches missing parts. In the store, a run has the same files,
except that its journal is in pieces `journal/<offset>-<lease>`. At equal offsets, the higher lease
counts.

Object names are not trusted: only known names of run files are fetched.
"""

import hashlib
import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

from bakeoff._kernel.files import PRIVATE, in_megabytes, lock_file, open_file, read_file, write_atomically
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.storage.journal_lines import JOURNAL, lines_forwards
from bakeoff.storage.object_store import SCHEMES, ObjectStore, StoreError
from bakeoff.storage.own_runs import state_folder

MARKER = "store.json"
MAX_RUN_SIZE = 64 << 30
MAX_PIECE_SIZE = 64 << 20
"""The largest piece that is read, because a piece is held in memory. Ours have 4 MB, or a batch of lines more."""
_MAX_OBJECTS = 1_000_000
_AT_ONCE = 32  # objects, and
_BYTES_AT_ONCE = 64 << 20
_RUNS_AT_ONCE = 8
_MAX_NOTE_LENGTH = 200
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_APPENDED = ("labels.jsonl", "journal.damaged.jsonl")
_ADDRESS = re.compile(r"(?P<scheme>[a-z0-9]+):/+(?P<place>.*)", re.DOTALL)
_LIKE_AN_ADDRESS = re.compile(r"[a-z0-9]+:/[^/]|(s3|gs|gcs|az|abfs|file):", re.IGNORECASE)
_PIECE = re.compile(r"journal/(\d{15})-(\d{6})")
_DIGEST = re.compile(rb'"([0-9a-f]{64})"')
_FILE = re.compile(
    r"plan\.json|seal\.json|signature\.json|labels\.jsonl|journal\.damaged\.jsonl"
    r"|blobs/[0-9a-f]{2}/[0-9a-f]{64}|pictures/[A-Za-z0-9_-][A-Za-z0-9._-]{0,150}"
)


class JournalPiece(NamedTuple):
    """A part of a journal: its offset, the number of its writer's lease, and its length."""

    begin: int
    lease: int
    size: int

    @property
    def name(self) -> str:
        """Return the key of the piece within the run."""
        return f"journal/{self.begin:015d}-{self.lease:06d}"

    @property
    def end(self) -> int:
        """Return the offset of the end of the piece in the journal."""
        return self.begin + self.size


def is_store_address(text: str) -> bool:
    """Return True if a text is a store address, even if `//` became `/` as in a path."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and found["scheme"] in SCHEMES


def parse_address(text: str) -> str:
    """Return an address in normal form, `s3://bucket/folder`. Raise UsageError if unusable."""
    found = _ADDRESS.fullmatch(text)
    if found is None or found["scheme"] not in SCHEMES:
        raise UsageError(f"{text!r} is no address of a store: write s3://, gs:// or az://, then bucket and folder")
    place = re.sub(r"/+", "/", found["place"]).strip("/")
    if "@" in place.partition("/")[0]:
        raise UsageError("the address of a store must not hold keys: set the variables of its own tools instead")
    if not place or not place.isprintable() or any(part in (".", "..") for part in place.split("/")):
        raise UsageError(f"{text!r} does not name a bucket and a folder in it, such as s3://bucket/results")
    return f"{found['scheme']}://{place}"


def results_folder(results: Path) -> Path:
    """Return the folder for `--results`. For a store address, this is the folder of local copies.

    Make that folder if it is missing. Raise `UsageError` for a malformed address, and
    `RunFolderError` if the folder cannot be made.
    """
    text = str(results)
    if text.startswith("file:/"):
        return Path("/" + text.removeprefix("file:").lstrip("/"))
    if not is_store_address(text):
        if _LIKE_AN_ADDRESS.match(text) and not results.exists():
            raise UsageError(
                f"--results {text} is no folder and no address of a store: write s3://bucket/folder, or gs, az"
            )
        return results
    address = parse_address(text)
    try:
        folder = _folder_of(address)
        if not (folder / MARKER).is_file():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(folder / MARKER, json.dumps({"address": address}).encode())
    except (OSError, RuntimeError) as error:
        raise RunFolderError(f"the folder for copies of {address} cannot be made: {error}") from error
    return folder


def _folder_of(address: str) -> Path:
    return state_folder() / "stores" / hashlib.sha256(address.encode()).hexdigest()[:16]


def store_of(results: Path) -> ObjectStore | None:
    """Return the store whose copies are in a folder of results; None for other folders.

    Only folders made by `results_folder` count, since a `store.json` in a cloned repository could
    name someone else's bucket.
    """
    try:
        if not (results / MARKER).exists() or results.resolve().parent != (state_folder() / "stores").resolve():
            return None
        address = parse_address(json.loads(read_file(results / MARKER, 1 << 16))["address"])
        if results.resolve().name != _folder_of(address).name:
            raise ValueError(f"{address} belongs to another folder")
    except (OSError, RuntimeError, ValueError, TypeError, KeyError, UsageError) as error:
        raise RunFolderError(
            f"{results / MARKER} cannot be used: {error}; delete it, and name the address of the store with --results"
        ) from error
    return ObjectStore(address)


def split_run_address(text: str) -> tuple[Path, str]:
    """Split an address such as `s3://bucket/runs/NAME` into folder of copies and run name."""
    address = parse_address(text)
    place, _, name = address.rpartition("/")
    if not place.endswith("/runs") or not _RUN.fullmatch(name):
        raise UsageError(f"{text} is no run in a store: its address ends with /runs/ and the name of the run")
    return results_folder(Path(place.removesuffix("/runs"))), name


def stored_runs(store: ObjectStore) -> list[str]:
    """Return the names of all runs in a store, oldest first."""
    return [name for name in store.folders("runs") if _RUN.fullmatch(name)]


def fetch_all(results: Path, tell: Callable[[str], object]) -> None:
    """If the folder holds copies of a store, fetch the new parts of all runs.

    An unchanged run needs one request. `tell` is called with the problem of each run that cannot be
    fetched, whose copy stays unchanged. Raise StoreError if the store is unusable.
    """
    if (store := store_of(results)) is None:
        return
    pool = ThreadPoolExecutor(_RUNS_AT_ONCE, thread_name_prefix="fetch")
    try:
        fetched = {name: pool.submit(fetch_run, store, results, name) for name in stored_runs(store)}
        for name, fetching in fetched.items():
            try:
                fetching.result()
            except StoreError:
                raise
            except (RunFolderError, OSError) as error:
                tell(f"run {name} is not fetched: {error}")
    finally:
        pool.shutdown(cancel_futures=True)


def fetch_run(store: ObjectStore, results: Path, name: str) -> bool:
    """Fetch the new parts of a run. Return False if the store does not have it."""
    if not _RUN.fullmatch(name):
        return False
    sizes = sizes_of(store, f"runs/{name}")
    if "plan.json" not in sizes:
        return False
    fetch_files(store, results / "runs" / name, sizes)
    return True


def sizes_of(store: ObjectStore, run: str) -> dict[str, int]:
    """Return the files of a run in a store, and their sizes."""
    return {key.removeprefix(f"{run}/"): size for key, size in store.sizes(run).items()}


def fetch_files(store: ObjectStore, folder: Path, sizes: dict[str, int]) -> None:
    """Fetch the new parts of a run with these files.

    Raise RunFolderError if the copy has diverged from the store. A writer calls this while it holds
    the lease, so that nobody else adds trials.
    """
    run = f"runs/{folder.name}"
    if len(sizes) > _MAX_OBJECTS or sum(sizes.values()) > MAX_RUN_SIZE:
        raise RunFolderError(
            f"{store.address}/{run} has {len(sizes):,} objects of {in_megabytes(sum(sizes.values()))}: that is too much"
        )
    if any(name.startswith("journal/") and name.endswith(".zst") for name in sizes):
        raise RunFolderError(
            f"{store.address}/{run} cannot be read: an older version divided its journal into compressed parts"
        )
    pieces = journal_pieces(sizes)
    for piece in pieces:
        if piece.size > MAX_PIECE_SIZE:
            raise RunFolderError(
                f"{store.address}/{run}/{piece.name} is not fetched: it has {in_megabytes(piece.size)}, and a piece of "
                f"a journal at most {in_megabytes(MAX_PIECE_SIZE)}. It was not written by bakeoff"
            )
    _check_joined(sizes, pieces, folder, f"{store.address}/{run}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = folder / ".fetching"  # not the journal's lock, since reading is not writing
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    with os.fdopen(descriptor, "rb+") as note:
        lock_file(descriptor, lock, wait=True)
        behind = _fetch_journal(store, run, folder, pieces, note)
        wanted = [file for file in sizes if _FILE.fullmatch(file) and _is_new(folder, file, sizes[file], behind=behind)]
        for group in in_groups(wanted, sizes):
            for key, data in store.read_some([f"{run}/{file}" for file in group]).items():
                path = folder / key.removeprefix(f"{run}/")
                if path.name not in _APPENDED or not path.exists() or data.startswith(read_file(path)):
                    write_atomically(path, data, PRIVATE)


def journal_pieces(sizes: dict[str, int]) -> list[JournalPiece]:
    """Return the pieces that make up a journal, without those of writers that lost the lease."""
    found: dict[int, list[JournalPiece]] = {}
    for piece in _all_pieces(sizes):
        found.setdefault(piece.begin, []).append(piece)
    pieces: list[JournalPiece] = []
    end, lease = 0, 0
    while usable := found.get(end):
        best = max(usable)
        if best.lease < lease:
            break
        pieces.append(best)
        end, lease = best.end, best.lease
    return pieces


def _all_pieces(sizes: dict[str, int]) -> Iterator[JournalPiece]:
    for file, size in sizes.items():
        if (match := _PIECE.fullmatch(file)) and size:
            yield JournalPiece(int(match[1]), int(match[2]), size)


def unjoined_pieces(sizes: dict[str, int], pieces: list[JournalPiece]) -> list[JournalPiece]:
    """Return pieces with a current lease that leave a gap after `pieces` or overlap them."""
    begins = [piece.begin for piece in pieces]
    found = []
    for piece in _all_pieces(sizes):
        before = pieces[place - 1] if (place := bisect_right(begins, piece.begin)) else JournalPiece(0, 0, 0)
        overlaps = before.begin < piece.begin < before.end and piece.lease > before.lease
        if overlaps or (piece.begin > before.end and piece.lease >= before.lease):
            found.append(piece)
    return sorted(found)


def _check_joined(sizes: dict[str, int], pieces: list[JournalPiece], folder: Path, address: str) -> None:
    """Raise RunFolderError if pieces do not join, unless the local journal has their lines."""
    if not (unjoined := unjoined_pieces(sizes, pieces)):
        return
    if (folder / JOURNAL).exists() and (folder / JOURNAL).stat().st_size >= unjoined[-1].end:
        return
    first = unjoined[0]
    before = max((piece for piece in pieces if piece.begin < first.begin), default=None)
    joins = f"{before.name} ends at byte {before.end}" if before else "the piece of byte 0 is missing"
    names = ", ".join(piece.name for piece in unjoined[:3]) + (" and more" if len(unjoined) > 3 else "")
    raise RunFolderError(
        f"the pieces of the journal in {address} do not join: {joins}, and {first.name} begins at byte {first.begin}. "
        "If a process is uploading it now, try again when that has ended. If a machine has the whole run, call "
        f"`bakeoff runs upload {folder.name}` there; if not, delete {names} from the store: the trials in them are "
        "lost, and `bakeoff resume` runs them again"
    )


def _fetch_journal(store: ObjectStore, run: str, folder: Path, pieces: list[JournalPiece], note: BinaryIO) -> bool:
    """Append missing lines to the journal. Return True if there were any.

    The last piece is compared with the local journal, unless `note` shows that both are unchanged.
    """
    journal = folder / JOURNAL
    if not pieces:
        return False
    descriptor = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, PRIVATE)
    with os.fdopen(descriptor, "rb+") as tail:
        size = journal.stat().st_size
        if note.read(_MAX_NOTE_LENGTH) == _comparison(journal, pieces[-1]):
            return False
        for piece in pieces:
            if piece.end < size and piece is not pieces[-1]:
                continue
            data = store.read(f"{run}/{piece.name}") or b""
            tail.seek(piece.begin)
            have = tail.read(len(data))
            if not data.startswith(have):
                raise RunFolderError(
                    f"{folder} and {store.address}/{run} have different journals: trials were run here that the "
                    f"store does not have. Move {folder} away to use the store's; its trials stay in the moved folder"
                )
            tail.write(data[len(have) :])
        tail.flush()
        os.fsync(descriptor)
    note.seek(0)
    note.truncate()
    note.write(_comparison(journal, pieces[-1]))
    return size < pieces[-1].end


def _comparison(journal: Path, last: JournalPiece) -> bytes:
    """Return a note that this journal was compared with the store's last piece."""
    state = journal.stat()
    return f"{last.name} {last.size} {state.st_size} {state.st_mtime_ns}".encode()


def _is_new(folder: Path, file: str, size: int, *, behind: bool) -> bool:
    """Return True if a file should be fetched. Local changes are never overwritten."""
    try:
        have = (folder / file).stat().st_size
    except OSError:
        return True
    if file.startswith("blobs/"):
        return have != size
    return size > have if file in _APPENDED else behind


def in_groups(files: list[str], sizes: dict[str, int]) -> Iterator[list[str]]:
    """Yield files in groups that fit in memory. Seal and plan come last, to show completeness."""
    group: list[str] = []
    for file in sorted(files, key=lambda file: (file in ("plan.json", "seal.json"), file)):
        if group and (len(group) >= _AT_ONCE or sum(sizes[one] for one in group) + sizes[file] > _BYTES_AT_ONCE):
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def unchanging_files(folder: Path, place: str) -> Iterator[str]:
    """Yield the files of a run in `blobs` or `pictures`, which are written only once."""
    for path in sorted((folder / place).rglob("*")):
        if path.is_file() and not path.is_symlink() and _FILE.fullmatch(file := path.relative_to(folder).as_posix()):
            yield file


def named_blobs(folder: Path, begin: int, end: int) -> Iterator[str]:
    """Yield the blobs that journal lines between two offsets refer to."""
    with open_file(folder / JOURNAL) as journal:
        journal.seek(begin)
        for place, line in lines_forwards(journal):
            if begin + place >= end:
                return
            for digest in _DIGEST.findall(line or b""):  # digests of blobs and others
                path = folder / (file := f"blobs/{digest[:2].decode()}/{digest.decode()}")
                if path.is_file() and not path.is_symlink():
                    yield file


def changing_files(folder: Path) -> Iterator[str]:
    """Yield the small files of a run that may change."""
    for file in ("labels.jsonl", "journal.damaged.jsonl", "seal.json", "plan.json", "signature.json"):
        if (folder / file).is_file():
            yield file
