"""Watch the disk use of a command's folders."""

import errno
import os
import stat
import time
from collections.abc import Iterator

from .kernel import MEMORY_FILES, all_of, descendants

TICK = 0.02  # at least this long between two looks at the free space
WRITTEN_PER_SECOND = (2 << 30) * (os.cpu_count() or 1)  # by a command that does nothing else
FIRST_SCAN, SCAN_PAUSE = 0.25, 1.0  # seconds; the free space tells earlier when there is need
SLICE = 0.01  # for one slice of a check of a large tree, so that time limits are kept
ENTRY_BYTES = 256  # the cost of an empty file: its inode
BEYOND_ANY_LIMIT = 1 << 62


class DiskWatch:
    """Checks the tree in slices, and at once when the file system loses more space than the limit leaves."""

    def __init__(self, roots: list[str], owner: int | None, limit: int) -> None:
        self.roots, self.owner, self.limit = roots, owner, limit
        self.scan: Iterator[int] | None = None
        self.seen = 0
        self.known = 0
        self.free_at_start = self.free_at_scan = self.free()
        self.spent = 0.0
        self.scan_due = time.monotonic() + FIRST_SCAN
        self.look_due = 0.0
        self.plan_look(time.monotonic())

    @property
    def due(self) -> float:
        """Return when to call `over` again."""
        return 0.0 if self.scan is not None else min(self.scan_due, self.look_due)

    def plan_look(self, now: float) -> None:
        """Look at the free space before a command could have written half of what it has left."""
        self.look_due = now + max(TICK, (self.limit - self.known) / 2 / WRITTEN_PER_SECOND)

    def free(self) -> int:
        found = os.statvfs(self.roots[0])
        return found.f_bfree * found.f_frsize

    def over(self, now: float) -> bool:
        if self.scan is None:
            if now < self.due:
                return False
            self.plan_look(now)
            if now < self.scan_due and self.known + self.free_at_scan - self.free() <= self.limit:
                return False
            self.begin()
        return self.advance(now + SLICE)

    def begin(self) -> None:
        self.free_at_scan = self.free()
        self.scan, self.seen, self.spent = disk_use(self.roots, self.owner, self.limit), 0, 0.0

    def advance(self, until: float) -> bool:
        started = time.monotonic()
        assert self.scan is not None
        for used in self.scan:
            self.seen = used
            if used > self.limit:
                return True
            if time.monotonic() > until:
                self.spent += time.monotonic() - started
                return False
        self.scan, self.known = None, self.seen
        self.spent += time.monotonic() - started
        # A hundredth of the time goes into checks, or a twentieth where they would be more than two seconds apart.
        self.scan_due = time.monotonic() + max(SCAN_PAUSE, min(100 * self.spent, 2.0), 20 * self.spent)
        return False

    def over_at_the_end(self) -> bool:
        """Check again if a writer may have hit its file size limit between two checks."""
        if self.free_at_start - self.free() < self.limit // 4 and self.known < self.limit // 2:
            return False
        self.begin()
        return self.advance(time.monotonic() + 5.0)


def disk_use(roots: list[str], owner: int | None, limit: int) -> Iterator[int]:
    """Yield the bytes found so far, entry by entry, so that the caller can pause. Ends early above the limit."""
    used, linked = 0, set[tuple[int, int]]()
    queue = list(roots)
    while queue:
        folder = queue.pop()
        try:
            entries = os.scandir(folder)
        except OSError:
            continue
        with entries:
            for entry in entries:
                used += entry_bytes(entry, linked, queue)
                yield used
                if used > limit:
                    return
    # A container's processes are not below us, but they belong to its user.
    processes = descendants() if owner is None else all_of(owner)
    yield used + sum(unlinked_bytes(pid, linked) + mapped_bytes(pid, device_of(roots), linked) for pid in processes)


def entry_bytes(entry: os.DirEntry[str], linked: set[tuple[int, int]], queue: list[str]) -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError as problem:
        return BEYOND_ANY_LIMIT if problem.errno == errno.ENAMETOOLONG else 0  # no honest program nests that deep
    if stat.S_ISDIR(found.st_mode):
        queue.append(entry.path)
    elif found.st_nlink > 1:
        if (found.st_dev, found.st_ino) in linked:
            return 0
        linked.add((found.st_dev, found.st_ino))
    return found.st_blocks * 512 + ENTRY_BYTES


def unlinked_bytes(pid: int, seen: set[tuple[int, int]]) -> int:
    """Return the size of files that were deleted while open, which take space and show up nowhere else."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return 0  # it has ended meanwhile
    return sum(bytes_if_unlinked(f"/proc/{pid}/fd/{name}", seen) for name in names)


def bytes_if_unlinked(descriptor: str, seen: set[tuple[int, int]]) -> int:
    try:
        found = os.stat(descriptor)
    except OSError:
        return 0  # it was closed meanwhile
    identity = (found.st_dev, found.st_ino)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink or identity in seen or found.st_dev == MEMORY_FILES:
        return 0
    seen.add(identity)
    return found.st_blocks * 512


def device_of(roots: list[str]) -> int:
    return os.stat(roots[0]).st_dev


def mapped_bytes(pid: int, device: int, seen: set[tuple[int, int]]) -> int:
    """Return the size of deleted files on a device that a process only has in its memory, and not open any more."""
    sizes: dict[tuple[int, int], int] = {}
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            deleted = [line.split(None, 5) for line in file if line.endswith(b" (deleted)\n")]
    except OSError:
        return 0  # it has ended meanwhile
    for span, _, offset, numbers, inode, _ in deleted:
        major, minor = numbers.split(b":")
        identity = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
        if identity[0] == device and identity not in seen:
            begin, end = span.split(b"-")
            sizes[identity] = max(sizes.get(identity, 0), int(offset, 16) + int(end, 16) - int(begin, 16))
    seen.update(sizes)
    return sum(sizes.values())
