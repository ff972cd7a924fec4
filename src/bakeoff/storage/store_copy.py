"""Keep local copies of runs that live in an object store.

A folder in the user's state folder stands for the results at one address; its `store.json` names the address. Runs are
written there as anywhere else, and uploaded beside the trials (`store_upload`). Reading a run first fetches what is
missing here. In the store, a run has the same files, but for the journal: it lies in pieces `journal/<offset>-<lease>`.
Of two pieces that begin at the same offset, that of the higher lease counts.

Names of objects are not trusted: only those that a run has are fetched.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bakeoff._kernel.files import PRIVATE, in_megabytes, read_file, write_atomically
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.storage.made_here import state_folder
from bakeoff.storage.object_store import ObjectStore, StoreError, is_store_address, parse_address

MARKER = "store.json"
LARGEST_RUN = 64 << 30
_MOST_OBJECTS = 1_000_000
_AT_ONCE = 32  # objects, and
_BYTES_AT_ONCE = 64 << 20
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_APPENDED = ("labels.jsonl", "journal.damaged.jsonl")
_LIKE_AN_ADDRESS = re.compile(r"[a-z0-9]+:/[^/]|(s3|gs|gcs|az|abfs|file):", re.IGNORECASE)
_PIECE = re.compile(r"journal/(\d{15})-(\d{6})")
_FILE = re.compile(
    r"plan\.json|seal\.json|signature\.json|labels\.jsonl|journal\.damaged\.jsonl"
    r"|blobs/[0-9a-f]{2}/[0-9a-f]{64}|pictures/[A-Za-z0-9_-][A-Za-z0-9._-]{0,150}"
)


class Piece(NamedTuple):
    """A part of a journal: where it begins, the number of the lease of its writer, and its length."""

    begin: int
    lease: int
    size: int

    @property
    def name(self) -> str:
        return f"journal/{self.begin:015d}-{self.lease:06d}"


def results_folder(results: Path) -> Path:
    """Return the folder to use for `--results`: for the address of a store, that of the local copies."""
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
    """Return the store whose copies a folder of results holds, None for other folders.

    Only folders that `results_folder` has made count: a `store.json` in the results of a cloned repository would upload
    runs to the bucket of someone else.
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
    """Return the folder of copies and the name of the run that an address such as `s3://bucket/runs/NAME` names."""
    address = parse_address(text)
    place, _, name = address.rpartition("/")
    if not place.endswith("/runs") or not _RUN.fullmatch(name):
        raise UsageError(f"{text} is no run in a store: its address ends with /runs/ and the name of the run")
    return results_folder(Path(place.removesuffix("/runs"))), name


def stored_runs(store: ObjectStore) -> list[str]:
    """Return the names of all runs in a store, oldest first."""
    return [name for name in store.folders("runs") if _RUN.fullmatch(name)]


def fetch_all(results: Path, tell: Callable[[str], object]) -> None:
    """Fetch what is new of all runs, if the folder holds copies of a store.

    `tell` is called with the problem of each run that cannot be fetched; its copy stays as it is. Raise StoreError if
    the store cannot be used.
    """
    if (store := store_of(results)) is not None:
        for name in stored_runs(store):
            try:
                fetch_run(store, results, name)
            except StoreError:
                raise
            except (RunFolderError, OSError) as error:
                tell(f"run {name} is not fetched: {error}")


def fetch_run(store: ObjectStore, results: Path, name: str) -> bool:
    """Fetch what is new of one run. Return False if the store has no such run."""
    if not _RUN.fullmatch(name):
        return False
    sizes = sizes_of(store, f"runs/{name}")
    if "plan.json" not in sizes:
        return False
    fetch_files(store, results / "runs" / name, sizes)
    return True


def sizes_of(store: ObjectStore, run: str) -> dict[str, int]:
    """Return the names of the files that a store has of a run, and their sizes."""
    return {key.removeprefix(f"{run}/"): size for key, size in store.sizes(run).items()}


def fetch_files(store: ObjectStore, folder: Path, sizes: dict[str, int]) -> None:
    """Fetch what is new of a run that has these files. Raise RunFolderError if the copy does not continue the store's.

    A writer calls it while it holds the lease: nobody else adds trials then.
    """
    run = f"runs/{folder.name}"
    if len(sizes) > _MOST_OBJECTS or sum(sizes.values()) > LARGEST_RUN:
        raise RunFolderError(
            f"{store.address}/{run} has {len(sizes):,} objects of {in_megabytes(sum(sizes.values()))}: that is too much"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    behind = _fetch_journal(store, run, folder, journal_pieces(sizes))
    wanted = [file for file in sizes if _FILE.fullmatch(file) and _is_new(folder, file, sizes[file], behind=behind)]
    for group in in_groups(wanted, sizes):
        for key, data in store.read_some([f"{run}/{file}" for file in group]).items():
            path = folder / key.removeprefix(f"{run}/")
            if path.name not in _APPENDED or not path.exists() or data.startswith(read_file(path)):
                write_atomically(path, data, PRIVATE)


def journal_pieces(sizes: dict[str, int]) -> list[Piece]:
    """Return the pieces that make up a journal. Those of writers that lost their lease are left out."""
    found = [(int(match[1]), int(match[2]), size) for file, size in sizes.items() if (match := _PIECE.fullmatch(file))]
    by_begin = {piece.begin: piece for piece in sorted(Piece(*one) for one in found)}  # the highest lease is the last
    pieces: list[Piece] = []
    end, lease = 0, 0
    while (piece := by_begin.get(end)) is not None and piece.size and piece.lease >= lease:
        pieces.append(piece)
        end, lease = piece.begin + piece.size, piece.lease
    return pieces


def _fetch_journal(store: ObjectStore, run: str, folder: Path, pieces: list[Piece]) -> bool:
    """Append what is missing of the journal. Return True if something was."""
    journal = folder / "journal.jsonl"
    if not pieces:
        return False
    descriptor = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, PRIVATE)
    with os.fdopen(descriptor, "rb+") as file:
        size = os.fstat(descriptor).st_size
        for piece in pieces:
            end = piece.begin + piece.size
            if end < size and piece is not pieces[-1]:
                continue
            data = store.read(f"{run}/{piece.name}") or b""
            file.seek(piece.begin)
            have = file.read(len(data))
            if not data.startswith(have):
                raise RunFolderError(
                    f"{folder} and {store.address}/{run} have different journals: trials were run here that the store "
                    f"does not have. Move {folder} away to use the store's; its trials stay in the moved folder"
                )
            file.seek(piece.begin + len(have))
            file.write(data[len(have) :])
        file.flush()
        os.fsync(descriptor)
    return size < pieces[-1].begin + pieces[-1].size


def _is_new(folder: Path, file: str, size: int, *, behind: bool) -> bool:
    """Tell whether a file has to be fetched. What was changed here and is not uploaded yet must not be overwritten."""
    try:
        have = (folder / file).stat().st_size
    except OSError:
        return True
    if file.startswith("blobs/"):
        return have != size
    return size > have if file in _APPENDED else behind


def in_groups(files: list[str], sizes: dict[str, int]) -> Iterator[list[str]]:
    """Yield files in groups that fit in memory, the seal and the plan last: they say that the rest is there."""
    group: list[str] = []
    for file in sorted(files, key=lambda file: (file in ("plan.json", "seal.json"), file)):
        if group and (len(group) >= _AT_ONCE or sum(sizes[one] for one in group) + sizes[file] > _BYTES_AT_ONCE):
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def files_of(folder: Path) -> Iterator[str]:
    """Yield the files of a run that are stored besides its journal, blobs and pictures first."""
    for place in ("blobs", "pictures"):
        for path in sorted((folder / place).rglob("*")):
            if (
                path.is_file()
                and not path.is_symlink()
                and _FILE.fullmatch(file := path.relative_to(folder).as_posix())
            ):
                yield file
    for file in ("labels.jsonl", "journal.damaged.jsonl", "seal.json", "plan.json", "signature.json"):
        if (folder / file).is_file():
            yield file
