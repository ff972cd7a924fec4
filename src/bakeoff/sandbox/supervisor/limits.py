"""Watch the disk use of a command's folders, and its memory if no cgroup limits it.

The supervisor's loop calls a watch's `over(now)` when `due` is reached, and `over_at_the_end` after
the command has ended. Times are from `time.monotonic`. Each watch sets `due` so that a command
cannot far exceed its limit between two checks, and so that checks take little processor time.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterator

from .cgroups import Cgroup
from .kernel import LINUX, MEMORY_FILES, PAGE, all_of, descendants

TICK = 0.02  # shortest time between two checks
WRITTEN_PER_SECOND = (2 << 30) * (os.cpu_count() or 1)  # the most that a command can write
FIRST_SCAN, SCAN_PAUSE = 0.25, 1.0  # seconds; shrinking free space starts a scan earlier
SLICE = 0.01  # longest time for a part of a check, to keep time limits
ENTRY_BYTES = 256  # cost of an empty file, its inode
BEYOND_ANY_LIMIT = 1 << 62
CGROUP_PAUSE = 0.25  # seconds; the kernel enforces the limit
FEW = 64  # sockets and pipes that every program may have
SOCKET_BUFFER, PIPE_BUFFER = 208 << 10, 64 << 10  # default bytes, which the filter keeps from growing
LINKED = re.compile(r"(socket|pipe):\[(\d+)\]")  # unlike a file's link, without a folder
SCRATCH = ("/dev/shm", "/tmp")  # noqa: S108 - not used, only counted
INODE = 1024  # bytes of the kernel for a file in memory
SEMAPHORE = 128  # bytes
FILLED_PER_SECOND = (5 << 30) * (os.cpu_count() or 1)  # the most memory that a command can fill


class DiskWatch:
    """Checks disk use in steps, and at once if free space shrinks more than the limit allows.

    Args:
        roots: the folders to count together.
        owner: the user whose processes may hold deleted files; None means our descendants.
        limit: the limit in bytes.
    """

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
        """Return when to call `over` next."""
        return 0.0 if self.scan is not None else min(self.scan_due, self.look_due)

    def plan_look(self, now: float) -> None:
        """Schedule the next check before a command can have written half of the rest."""
        self.look_due = now + max(TICK, (self.limit - self.known) / 2 / WRITTEN_PER_SECOND)

    def free(self) -> int:
        """Return the free bytes of the file system: a hint, because others change them too."""
        found = os.statvfs(self.roots[0])
        return found.f_bfree * found.f_frsize

    def over(self, now: float) -> bool:
        """Return True if the limit is exceeded. Checking a large tree takes several calls."""
        if self.scan is None:
            if now < self.due:
                return False
            self.plan_look(now)
            if now < self.scan_due and self.known + self.free_at_scan - self.free() <= self.limit:
                return False
            self.begin()
        return self.advance(now + SLICE)

    def begin(self) -> None:
        """Begin a new check of the whole tree, which `advance` carries out."""
        self.free_at_scan = self.free()
        self.scan, self.seen, self.spent = disk_use(self.roots, self.owner, self.limit), 0, 0.0

    def advance(self, until: float) -> bool:
        """Continue the check until a time. Return True if it has found more than the limit."""
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
        # Checks take a hundredth of the time, or a twentieth if they are over two seconds apart.
        self.scan_due = time.monotonic() + max(SCAN_PAUSE, min(100 * self.spent, 2.0), 20 * self.spent)
        return False

    def over_at_the_end(self) -> bool:
        """Return True if the ended command exceeded the limit.

        The tree is checked again only if a writer may have hit its file size limit.
        """
        if self.free_at_start - self.free() < self.limit // 4 and self.known < self.limit // 2:
            return False
        self.begin()
        return self.advance(time.monotonic() + 5.0)


def disk_use(roots: list[str], owner: int | None, limit: int) -> Iterator[int]:
    """Yield the bytes found so far after each entry, so that the caller can pause.

    The search ends early if the limit is exceeded.
    """
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
    # A container's processes are not our descendants, but belong to its user.
    processes, device = descendants() if owner is None else all_of(owner), os.stat(roots[0]).st_dev
    yield used + sum(unlinked_bytes(pid, linked) + mapped_bytes(pid, device, linked) for pid in processes)


def entry_bytes(entry: os.DirEntry[str], linked: set[tuple[int, int]], queue: list[str]) -> int:
    """Return the size of an entry. Queue folders, and count files with several links once."""
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError as problem:
        return BEYOND_ANY_LIMIT if problem.errno == errno.ENAMETOOLONG else 0  # no honest program nests so deeply
    if stat.S_ISDIR(found.st_mode):
        queue.append(entry.path)
    elif found.st_nlink > 1:
        if (found.st_dev, found.st_ino) in linked:
            return 0
        linked.add((found.st_dev, found.st_ino))
    return found.st_blocks * 512 + ENTRY_BYTES


def unlinked_bytes(pid: int, seen: set[tuple[int, int]]) -> int:
    """Return the size of files that were deleted while open, since they still take space."""
    used = 0
    for found in opened_by(pid):
        identity = (found.st_dev, found.st_ino)
        if stat.S_ISREG(found.st_mode) and not found.st_nlink and identity not in seen and identity[0] != MEMORY_FILES:
            seen.add(identity)
            used += found.st_blocks * 512
    return used


def opened_by(pid: int) -> Iterator[os.stat_result]:
    """Yield the `stat` of each open file of a process; empty if it has ended."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        try:
            yield os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            pass  # it was just closed


def mapped_bytes(pid: int, device: int, seen: set[tuple[int, int]]) -> int:
    """Return the size of deleted files on a device that a process has mapped but not open."""
    sizes: dict[tuple[int, int], int] = {}
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            deleted = [line.split(None, 5) for line in file if line.endswith(b" (deleted)\n")]
    except OSError:
        return 0  # it has just ended
    for span, _, offset, numbers, inode, _ in deleted:
        major, minor = numbers.split(b":")
        identity = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
        if identity[0] == device and identity not in seen:
            begin, end = span.split(b"-")
            sizes[identity] = max(sizes.get(identity, 0), int(offset, 16) + int(end, 16) - int(begin, 16))
    seen.update(sizes)
    return sum(sizes.values())


class MemoryWatch:
    """Checks memory before a command can have filled half of the rest of its limit."""

    def __init__(self, limit: int, ipc_lists: list[int] | None = None) -> None:
        self.limit, self.ipc_lists = limit, ipc_lists or []
        self.due = 0.0

    def over(self, now: float) -> bool:
        """Return True if the processes use more than the limit; always False without /proc.

        Shared pages count fully for every process. They are divided only if that exceeds the limit,
        because dividing is slow.
        """
        if not LINUX or now < self.due:
            return False
        tree = descendants()
        held = ipc_bytes(self.ipc_lists) + buffered_bytes(tree) + inode_bytes(tree) + memory_file_bytes(tree)
        left = self.limit - held - sum(map(resident_bytes, tree))
        if left < 0:
            left = self.limit - held - sum(map(proportional_bytes, tree))
        self.due = now + max(TICK, left / 2 / FILLED_PER_SECOND, 10 * (time.monotonic() - now))
        return left < 0

    def over_at_the_end(self, peak_bytes: int) -> bool:
        """Return True if the peak, as the kernel recorded it, exceeded the limit."""
        return peak_bytes > self.limit


class CgroupWatch:
    """Detects that the kernel killed a process because its control group ran out of memory."""

    def __init__(self, cgroup: Cgroup) -> None:
        self.cgroup = cgroup
        self.due = time.monotonic() + CGROUP_PAUSE

    def over(self, now: float) -> bool:
        if now < self.due:
            return False
        self.due = now + CGROUP_PAUSE
        return self.cgroup.ran_out_of_memory()

    def over_at_the_end(self, _peak_bytes: int) -> bool:
        """Check once more. The peak of a single process is ignored."""
        return self.cgroup.ran_out_of_memory()


class ConnectionWatch:
    """Watches memory in a container's TCP connections, which cgroups version 2 do not count."""

    def __init__(self, limit: int, owner: int) -> None:
        self.limit, self.owner = limit, owner
        self.due = time.monotonic() + CGROUP_PAUSE

    def over(self, now: float) -> bool:
        if now < self.due:
            return False
        self.due = now + CGROUP_PAUSE
        tree = all_of(self.owner)
        if sum(map(open_files, tree)) <= FEW:
            return False
        opened = {inode for pid in tree for kind, inode in linked_inodes(pid) if kind == "socket"}
        return sum(size for inode, size in tcp_queues(tree).items() if inode in opened) > self.limit

    def over_at_the_end(self, _peak_bytes: int) -> bool:
        """Return False, since the connections have ended with the command."""
        return False


def resident_bytes(pid: int) -> int:
    """Return the memory of a process with shared pages; 0 if it has ended. Fast."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Return the memory with shared pages divided among their users. Slow but fair."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
    except OSError:
        return resident_bytes(pid)


def ipc_bytes(lists: list[int]) -> int:
    """Return the memory in semaphores, queues and unattached System V segments.

    Attached segments count as memory of their processes.
    """
    if not lists:
        return 0
    segments, semaphores, queues = map(rows, lists)
    unattached = sum(int(row["rss"]) + int(row["swap"]) for row in segments if row["nattch"] == "0")
    others = sum(SEMAPHORE * int(row["nsems"]) for row in semaphores) + sum(int(row["cbytes"]) for row in queues)
    return unattached + others


def rows(descriptor: int) -> list[dict[str, str]]:
    """Read a kernel table from the beginning. Return each row by column name."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    content = b""
    while chunk := os.read(descriptor, 1 << 16):
        content += chunk
    names, *lines = [line.split() for line in content.decode("ascii").splitlines()]
    return [dict(zip(names, line, strict=True)) for line in lines]


def memory_file_bytes(tree: list[int]) -> int:
    """Return the size of open memory files. Parts that are also mapped count twice."""
    opened = [found for pid in tree for found in opened_by(pid) if found.st_dev == MEMORY_FILES]
    return sum({found.st_ino: found.st_blocks * 512 for found in opened}.values())


def inode_bytes(tree: list[int]) -> int:
    """Return the kernel memory for files in the command's own temporary file systems."""
    found = {}
    for folder in [(name, f"/proc/{pid}/root{name}") for name in SCRATCH for pid in tree[-1:]]:
        try:
            ours, theirs = (os.stat(path).st_dev for path in folder)
            files = os.statvfs(folder[1])
        except OSError:
            continue  # it has just ended, or has no such folder
        if ours != theirs:
            found[theirs] = (files.f_files - files.f_ffree) * INODE
    return sum(found.values())


def buffered_bytes(tree: list[int]) -> int:
    """Return the memory that sockets and pipes can hold, beyond the few that all programs have."""
    if sum(map(open_files, tree)) <= FEW:
        return 0
    inodes = {"socket": set[str](), "pipe": set[str]()}
    for pid in tree:
        for kind, inode in linked_inodes(pid):
            inodes[kind].add(inode)
    tcp = tcp_queues(tree)
    queued = sum(size for inode, size in tcp.items() if inode in inodes["socket"])
    others = max(len(inodes["socket"] - tcp.keys()) - FEW, 0)
    return queued + others * SOCKET_BUFFER + max(len(inodes["pipe"]) - FEW, 0) * PIPE_BUFFER


def open_files(pid: int) -> int:
    """Return the number of open files of a process; 0 if it has ended.

    Newer kernels report it as the folder's size. For older kernels, count the entries.
    """
    try:
        return os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0  # it has just ended


def linked_inodes(pid: int) -> list[tuple[str, str]]:
    """Return kind and inode of open sockets and pipes, from links such as `socket:[123]`."""
    folder = f"/proc/{pid}/fd"
    try:
        targets = [target_of(f"{folder}/{name}") for name in os.listdir(folder)]
    except OSError:
        return []  # it has just ended
    return [(match[1], match[2]) for match in map(LINKED.fullmatch, targets) if match]


def target_of(link: str) -> str:
    """Return the target of a link, or an empty string if it was just closed."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def tcp_queues(tree: list[int]) -> dict[str, int]:
    """Return the queued bytes of TCP connections by inode, in the command's network."""
    found = {}
    for name in ("tcp", "tcp6"):
        for pid in tree[-1:]:
            try:
                with open(f"/proc/{pid}/net/{name}", "rb") as file:
                    file.readline()
                    for line in file:
                        words = line.decode("ascii").split()
                        sent, received = words[4].split(":")
                        found[words[9]] = int(sent, 16) + int(received, 16)
            except (OSError, IndexError):
                pass  # it has just ended, or has no such network
    return found
