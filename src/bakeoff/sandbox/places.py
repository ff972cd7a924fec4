"""Make a trial's private folders ("place"), lease a user for them as root, and open workspaces.

As root, each open place has its own user from a reserved range, so that trials cannot read, signal
or starve each other. A lock on a file leases the user to one Bakeoff process, and ends with the
process. The file also names the folder, so that the next Bakeoff process can clean up after a
crash. Without root, each folder is locked, and folders without a lock are removed later.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path, PurePosixPath

from bakeoff._kernel.files import path_problem
from bakeoff._kernel.temporary import REMOVALS, held, is_left_behind
from bakeoff.errors import InfraError, SandboxMissing
from bakeoff.plan import Case, Limits
from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox.supervisor_client import supervise_now
from bakeoff.sandbox.untrusted_files import PLACE_PREFIX, open_folder, open_unlocked, take, write_below

LEASES = Path("/run/bakeoff/users")
PREFIX = PLACE_PREFIX
USERS = range(2_000_000_000, 2_000_004_096)  # above the ranges of containers, below reserved ids
USERS_IN_A_CONTAINER = range(60_578, 61_184)  # if only 65,536 ids are mapped
OWN_ETC = Path(__file__).with_name("etc")
SUPERVISOR_SECONDS = 5.0
INSIDE_USER, INSIDE_HOME = "1000", "/home/trial"  # as in /etc/passwd there


_held_here = set[tuple[str, int]]()  # users that this process has leased
os.register_at_fork(after_in_child=_held_here.clear)
_swept = set[Path]()  # folders where leftovers have been removed


class UserLease:
    """An unprivileged user that no other trial on this machine has while the lease lasts.

    The lease is a lock on a file, which names the trial's folder for cleaning up after a crash.
    """

    def __init__(self, uid: int, descriptor: int, folder: Path) -> None:
        self.uid, self._descriptor, self._key = uid, descriptor, (str(folder), uid)
        _held_here.add(self._key)

    def note(self, folder: Path | None) -> None:
        """Record the folder that the user owns, or None after its removal."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, os.fsencode(folder) if folder else b"", 0)

    def noted(self) -> Path | None:
        """Return the last recorded folder, perhaps of a crashed process, or None."""
        content = os.pread(self._descriptor, 4096, 0)
        return Path(os.fsdecode(content)) if content else None

    def close(self) -> None:
        """Release the user."""
        descriptor, self._descriptor = self._descriptor, -1  # the number will be reused
        _held_here.discard(self._key)
        os.close(descriptor)


def we_are_root() -> bool:
    """Return True if trials can have their own users, which needs root on Linux."""
    return sys.platform == "linux" and os.geteuid() == 0


@cache
def reserved_users() -> range:
    """Return the range of users for trials that this user namespace maps."""
    mapped = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
    for users in (USERS, USERS_IN_A_CONTAINER):
        if any(int(first) <= users[0] and users[-1] < int(first) + int(length) for first, _, length in mapped):
            return users
    raise SandboxMissing("this container maps too few user ids for trials; run it with 65,536 ids, or not as root")


def lease_user(folder: Path = LEASES) -> UserLease:
    """Lease the first free user, and remove what its last holder left behind.

    Raise `SandboxMissing` if `folder` cannot be made, and `InfraError` if all users are in use.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise SandboxMissing(f"cannot keep user locks in {folder}: {problem}; make it writable") from problem
    for uid in reserved_users():
        if (str(folder), uid) in _held_here:
            continue  # faster than asking the kernel when hundreds are leased
        if (lease := take_lease(uid, folder)) is not None:
            return lease
    raise InfraError(f"all {len(reserved_users())} trial users are in use; run fewer trials at a time")


def take_lease(uid: int, folder: Path) -> UserLease | None:
    """Lease this user. Return None if it is in use, or if leftovers cannot be removed."""
    descriptor = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    lease = UserLease(uid, descriptor, folder)
    left_behind = lease.noted()
    try:
        if left_behind is not None:  # left by a killed process, and not for the next trial
            wait_for_supervisors(left_behind)
            supervise_now({"sweep": lease.uid})
            if left_behind.exists():
                remove_tree(left_behind)
            lease.note(None)
    except InfraError:
        lease.close()
        return None
    return lease


@cache
def sweep_leases(folder: Path = LEASES) -> None:
    """Remove, once per process, the places of users whose holders were killed."""
    for file in folder.glob("[0-9]*"):
        if file.stat().st_size and (lease := take_lease(int(file.name), folder)) is not None:
            lease.close()


@contextlib.contextmanager
def probe_place() -> Iterator[Place]:
    """Open a place to probe a sandbox, with a leased user and without an event loop."""
    with contextlib.ExitStack() as stack:
        lease = stack.enter_context(contextlib.closing(lease_user())) if we_are_root() else None
        root = make_root(None, lease)
        stack.callback(remove_place, root, lease)
        with held(root):
            yield make_place(root, lease)


def wait_for_supervisors(root: Path) -> None:
    """Wait for the supervisors of a place to end, since each then kills its user's processes.

    A supervisor may outlive Bakeoff until all processes have died.
    """
    give_up = time.monotonic() + SUPERVISOR_SECONDS
    while is_supervised(root):
        if time.monotonic() > give_up:
            raise InfraError(f"a command is still being ended in {root}; its user is not given out again before that")
        time.sleep(0.005)


def is_supervised(root: Path) -> bool:
    """Return True if a supervisor, which locks the folder, still works in a place."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.asynccontextmanager
async def open_place(parent: Path | None = None, *, keep: bool = False) -> AsyncIterator[Place]:
    """Open a place. At the end of the block, remove it with every process of its user.

    In a run, the removal happens in the background; see `removals`.

    Args:
        parent: The parent folder; by default, the temporary folder.
        keep: Keep the folders for inspection, owned by our own user.
    """
    where = LEASES if we_are_root() else parent or Path(tempfile.gettempdir())  # root finds places by leases
    if where not in _swept:
        _swept.add(where)  # before the sweep, so that other places need not wait
        await asyncio.to_thread(sweep_leases if we_are_root() else sweep_places, where)
    lease = lease_user() if we_are_root() else None
    try:
        root = make_root(parent, lease)
    except BaseException:
        if lease is not None:
            lease.close()
        raise
    lock = contextlib.ExitStack()
    try:
        if lease is None:
            lock.enter_context(held(root))
        yield make_place(root, lease)
    finally:
        # The thread releases lock and lease itself, because it continues if the task is cancelled.
        end = partial(end_place, root, lease, lock, keep)
        beside = None if keep else REMOVALS.get()
        if beside is not None and beside.open:
            beside.add(root, end)
        else:
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, end))


def end_place(root: Path, lease: UserLease | None, lock: contextlib.ExitStack, keep: bool) -> None:
    """Remove or keep a place, and release its user and its lock."""
    with lock:
        try:
            if lease is not None:
                wait_for_supervisors(root)
            (keep_place if keep else remove_place)(root, lease)
        finally:
            if lease is not None:
                lease.close()


def make_root(parent: Path | None, lease: UserLease | None) -> Path:
    """Make the folder of a place, and note it in the lease for cleaning up after a crash."""
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
    if lease is not None:
        lease.note(root)
        root.chmod(0o711)
    return root


@cache
def sweep_places(folder: Path) -> None:
    """Remove, once per process, the places that killed processes of our user have left."""
    for root in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, InfraError):  # another user's, or just removed by another process
            if is_left_behind(root):
                remove_tree(root)


def make_place(root: Path, lease: UserLease | None) -> Place:
    """Make the three folders of a place, owned by its user."""
    place = Place(work=root / "work", home=root / "home", tmp=root / "tmp", uid=lease.uid if lease else None)
    for folder in (place.work, place.home, place.tmp):
        folder.mkdir(mode=0o700)
        if place.uid is not None:
            os.chown(folder, place.uid, place.uid)
    return place


def name_user(place: Place, home: Path) -> dict[str, Path]:
    """Write files that name the user of a place, and return them by the paths that they replace.

    Some programs fail for a user without a name, such as Node's `os.userInfo()`.
    """
    user = str(place.uid if place.uid is not None else os.getuid())
    named = named_files(place.home.parent)
    for path, file in named.items():
        text = (OWN_ETC / Path(path).name).read_text(encoding="utf-8")
        text = text.replace(INSIDE_USER, user).replace(INSIDE_HOME, str(home))
        file.write_text(text, encoding="utf-8")
        file.chmod(0o644)
    return named


def named_files(root: Path) -> dict[str, Path]:
    """Return the files in `root` that replace /etc/passwd and /etc/group, by these paths."""
    return {f"/etc/{name}": root / name for name in ("passwd", "group")}


def remove_place(root: Path, lease: UserLease | None) -> None:
    """Remove the folders of a place, then its root, then the note in the lease."""
    for folder in (root / "work", root / "home", root / "tmp"):  # the lock goes last
        if folder.exists():
            remove_tree(folder)
    remove_tree(root)
    if lease is not None:
        lease.note(None)


def keep_place(root: Path, lease: UserLease | None) -> None:
    """Keep the folders for inspection. We own them, so that the next user cannot reach them."""
    if lease is not None:
        subprocess.run(
            ["chown", "-R", "--no-dereference", str(os.geteuid()), "--", root], check=True, capture_output=True
        )
        root.chmod(0o700)
        lease.note(None)


def remove_tree(root: Path) -> None:
    """Remove a tree, even if it is nested very deeply or has folders that cannot be entered."""
    try:
        shutil.rmtree(root)
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwx", "--", root], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--", root], check=False, capture_output=True)
    if root.exists():
        raise InfraError(f"cannot remove {root}; look at its mounts and attributes, then remove it by hand")


@contextlib.contextmanager
def one_command_at_a_time(place: Place) -> Iterator[None]:
    """Allow one command per place at a time: ending it ends all processes of the place.

    Raise `InfraError` if another command is running, or if the command would run as root.
    """
    if we_are_root() and place.uid is None:
        raise InfraError(f"{place.work} has no user of its own, and root must not run a subject; use open_place()")
    descriptor = open_unlocked(place.work)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as problem:
        raise InfraError(f"a command is already running in {place.work}; open a second place for this one") from problem
    finally:
        os.close(descriptor)


def put_files(place: Place, files: Mapping[str, bytes | str], *, runnable_scripts: bool = False) -> None:
    """Write files into the work folder, safely even if the subject already had access to it.

    Texts are written as UTF-8, with question marks for lone surrogates. With `runnable_scripts`,
    files that begin with `#!` can be executed.
    """
    with open_folder(place.work) as work:
        for name, given in files.items():
            content = given.encode(errors="replace") if isinstance(given, str) else given
            path = str(PurePosixPath(name))
            mode = 0o755 if runnable_scripts and content.startswith(b"#!") else 0o644
            problem = path_problem(path) or write_below(work, path, content, mode, place.uid)
            if problem:
                raise InfraError(f"{name!r} cannot be put into the work folder: it {problem}")


def hand_over(place: Place) -> None:
    """Make the place's user the owner of all its files, except hard links to files of others."""
    if place.uid is None:
        return
    for folder in (place.work, place.home, place.tmp):
        give(folder, place.uid)


def give(folder: Path, user: int, ours: Collection[int] = ()) -> None:
    """Give a folder's content to a user, but hard links only if their owner is in `ours`."""
    for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1 or found.st_uid in ours:
                os.chown(name, user, user, dir_fd=descriptor, follow_symlinks=False)


_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MAX_FILES = 1000  # files collected from one workspace
_MAX_BYTES = 32 * 1024 * 1024  # in total, because they are held in memory


@dataclass(frozen=True, slots=True)
class SandboxedWorkspace:
    """The workspace of one trial or one grading."""

    place: Place
    sandbox: Sandbox
    limits: Limits

    @property
    def folder(self) -> Path:
        """Return the folder that commands start in."""
        return self.place.work

    def write(self, files: Mapping[str, str], *, runnable_scripts: bool = False) -> None:
        """Write texts. With `runnable_scripts`, texts that begin with `#!` can be executed."""
        put_files(self.place, {name: text.encode() for name, text in files.items()}, runnable_scripts=runnable_scripts)

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        stdin: bytes = b"",
    ) -> CommandResult:
        """Run a command in the workspace. `env` is added to a few standard variables."""
        command = Command(argv, self.place, seconds, self.limits, env or {}, stdin=stdin, network=network)
        return await self.sandbox.run(command)

    async def collect(self, patterns: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the texts of matching files, and the reasons for refused files."""
        most_bytes = min(self.limits.disk_mb * 1024 * 1024, _MAX_BYTES)
        taken = await asyncio.to_thread(take, self.folder, patterns, max_bytes=most_bytes, max_files=_MAX_FILES)
        return taken.texts()


@contextlib.asynccontextmanager
async def open_workspace(
    sandbox: Sandbox, files: Mapping[str, str], limits: Limits, *, keep: bool = False
) -> AsyncIterator[SandboxedWorkspace]:
    """Open a new workspace with these files. Remove it at the end unless `keep` is set."""
    async with open_place(keep=keep) as place:
        workspace = SandboxedWorkspace(place, sandbox, limits)
        await asyncio.to_thread(workspace.write, files)
        yield workspace


def graded_files(case: Case, artefacts: Mapping[str, str]) -> dict[str, str]:
    """Return the files to grade: the case's, replaced by the subject's, then by hidden ones.

    A file is left out if its path collides with a file or folder of higher precedence.
    """
    allowed = _beside(artefacts, case.hidden)
    return {**_beside(case.files, allowed.keys() | case.hidden), **allowed, **case.hidden}


def _beside(files: Mapping[str, str], stronger: Iterable[str]) -> dict[str, str]:
    """Return the files whose paths do not collide with `stronger` ones."""
    taken = {PurePosixPath(name) for name in stronger}
    folders = {parent for path in taken for parent in path.parents}
    return {
        name: text
        for name, text in files.items()
        if (path := PurePosixPath(name)) not in taken | folders and not taken & set(path.parents)
    }


def first_code_block(answer: str) -> str:
    """Return the code in a text answer: the first fenced block, or the whole text."""
    fenced = _FENCED.search(answer)
    return fenced.group(1) if fenced else answer
