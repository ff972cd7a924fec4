"""A trial's private folders, and the user that owns them when we are root.

Each open place has a user of its own from a reserved range, so that no trial can read, signal or starve another.
The user is held by a lock on a file: two Bakeoff processes on one machine never share one, and a lock dies with
its process. The file also names the folder, so that whoever takes the user next removes what a crash left behind.
Without root the folder itself holds a lock, and the next process of ours removes those whose lock is free.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from bakeoff._kernel.paths import astray
from bakeoff.errors import InfraError, SandboxMissing
from bakeoff.protocols import Place
from bakeoff.sandbox.safe_copy import open_folder, write_below
from bakeoff.sandbox.supervised import supervise_now

LEASES = Path("/run/bakeoff/users")
PREFIX, LOCK = "bakeoff-place-", "held"
FRESH_SECONDS = 60.0  # a place this young may not hold its lock yet
USERS = range(2_000_000_000, 2_000_004_096)  # in nobody's way: above container ranges, below the reserved top
USERS_IN_A_CONTAINER = range(60_578, 61_184)  # where only 65,536 ids are mapped


class Lease:
    """One user, ours until closed."""

    def __init__(self, uid: int, descriptor: int) -> None:
        self.uid, self._descriptor = uid, descriptor

    def note(self, folder: Path | None) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, os.fsencode(folder) if folder else b"", 0)

    def noted(self) -> Path | None:
        content = os.pread(self._descriptor, 4096, 0)
        return Path(os.fsdecode(content)) if content else None

    def close(self) -> None:
        os.close(self._descriptor)


def we_are_root() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def reserved_users() -> range:
    """The range that is mapped in this user namespace."""
    mapped = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
    for users in (USERS, USERS_IN_A_CONTAINER):
        if any(int(first) <= users[0] and users[-1] < int(first) + int(length) for first, _, length in mapped):
            return users
    raise SandboxMissing("this container maps too few user ids for trials; run it with 65,536 ids, or not as root")


def lease_user(folder: Path = LEASES) -> Lease:
    """The first user nobody holds, with nothing of an earlier holder left."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise SandboxMissing(f"cannot keep user locks in {folder}: {problem}; make it writable") from problem
    for uid in reserved_users():
        descriptor = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        lease = Lease(uid, descriptor)
        try:
            return clean_lease(lease)
        except InfraError:  # what an earlier holder left cannot be removed: that user stays unused
            lease.close()
    raise InfraError(f"all {len(reserved_users())} trial users are in use; run fewer trials at a time")


@contextlib.contextmanager
def probe_place() -> Iterator[Place]:
    """A place to try a rung in, without an event loop. Its user is leased: a probe's end ends all of that user's."""
    lease = lease_user() if we_are_root() else None
    try:
        root = make_root(None, lease)
        try:
            with held(root):
                yield make_place(root, lease)
        finally:
            remove_place(root, lease)
    finally:
        if lease is not None:
            lease.close()


def clean_lease(lease: Lease) -> Lease:
    left_behind = lease.noted()
    if left_behind is not None:  # its holder was killed: neither processes nor folders of it may meet the next trial
        supervise_now({"sweep": lease.uid})
        if left_behind.exists():
            remove_tree(left_behind)
        lease.note(None)
    return lease


@contextlib.asynccontextmanager
async def open_place(parent: Path | None = None, *, keep: bool = False) -> AsyncIterator[Place]:
    """A place that is gone, with every process of its user, when the block ends; kept folders become ours."""
    if not we_are_root():  # root's are found by their leases
        await asyncio.to_thread(sweep_places, parent or Path(tempfile.gettempdir()))
    lease = lease_user() if we_are_root() else None
    try:
        root = make_root(parent, lease)
        try:
            with held(root):
                yield make_place(root, lease)
        finally:
            await asyncio.shield(asyncio.to_thread(keep_place if keep else remove_place, root, lease))
    finally:
        if lease is not None:
            lease.close()


def make_root(parent: Path | None, lease: Lease | None) -> Path:
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
    if lease is not None:
        lease.note(root)
        root.chmod(0o711)
    return root


@contextlib.contextmanager
def held(root: Path) -> Iterator[None]:
    """Ours while we live: a lock that ends with its process. A place that is kept has none, and so stays."""
    lock = root / LOCK
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


@cache
def sweep_places(folder: Path) -> None:
    """Remove, once in a process, what killed ones of our own user left there."""
    for root in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, InfraError):  # someone else's, or just being removed by another of ours
            if is_left_behind(root):
                remove_tree(root)


def is_left_behind(root: Path) -> bool:
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < FRESH_SECONDS:
        return False
    descriptor = os.open(root / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def make_place(root: Path, lease: Lease | None) -> Place:
    place = Place(work=root / "work", home=root / "home", tmp=root / "tmp", uid=lease.uid if lease else None)
    for folder in (place.work, place.home, place.tmp):
        folder.mkdir(mode=0o700)
        if place.uid is not None:
            os.chown(folder, place.uid, place.uid)
    return place


def remove_place(root: Path, lease: Lease | None) -> None:
    remove_tree(root)
    if lease is not None:
        lease.note(None)


def keep_place(root: Path, lease: Lease | None) -> None:
    """Leave the folders for a person to look at; the next holder of the user must not be able to."""
    if lease is not None:
        subprocess.run(
            ["chown", "-R", "--no-dereference", str(os.geteuid()), "--", root], check=True, capture_output=True
        )
        root.chmod(0o700)
        lease.note(None)


def remove_tree(root: Path) -> None:
    """Remove a tree that was made to resist: nested too deep, or with folders that nobody may enter."""
    try:
        shutil.rmtree(root)
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwx", "--", root], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--", root], check=False, capture_output=True)
    if root.exists():
        raise InfraError(f"cannot remove {root}; look at its mounts and attributes, then remove it by hand")


@contextlib.contextmanager
def one_command_at_a_time(place: Place) -> Iterator[None]:
    """Ending a command ends every process of its place, so a second one would be ended with the first."""
    try:
        descriptor = os.open(place.work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise InfraError(f"{place.work} is not there to run a command in: {problem.strerror}") from problem
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as problem:
        raise InfraError(f"a command is already running in {place.work}; open a second place for this one") from problem
    finally:
        os.close(descriptor)


def put_files(place: Place, files: Mapping[str, bytes]) -> None:
    """Write files that the subject may change into the work folder, also one that was in its hands before."""
    with open_folder(place.work) as work:
        for name, content in files.items():
            path = str(PurePosixPath(name))
            problem = astray(path) or write_below(work, path, content, 0o644, place.uid)
            if problem:
                raise InfraError(f"{name!r} cannot be put into the work folder: it {problem}")


def hand_over(place: Place) -> None:
    """Give everything in the place to its user. Hard links stay as they are: the other name may be anyone's."""
    if place.uid is None:
        return
    for folder in (place.work, place.home, place.tmp):
        for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
            for name in [*folders, *files]:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
                    os.chown(name, place.uid, place.uid, dir_fd=descriptor, follow_symlinks=False)
