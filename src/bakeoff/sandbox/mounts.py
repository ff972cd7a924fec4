"""Plan the private view of the file system for commands, if we are root.

A command that runs as another user cannot reach a toolchain inside a private folder, such as a home
with mode 0700. In the command's mount namespace, an empty folder covers the private one, and only
the needed paths are mounted there again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Step: TypeAlias = dict[str, Any]

SCRATCH = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 - these are what we cover
SCRATCH_BYTES = 64 << 20
MAX_LINKS = 40  # the kernel's limit


@dataclass
class MountPlan:
    """The covered folders, links, mounts and replaced files of a private view."""

    covers: dict[Path, tuple[int, int]] = field(default_factory=dict)  # path: mode, size
    links: dict[Path, str] = field(default_factory=dict)
    binds: dict[Path, bool] = field(default_factory=dict)  # path: writable
    replaced: dict[Path, Path] = field(default_factory=dict)  # path: the file that replaces it

    def cover(self, path: Path, mode: int, size: int = 0) -> None:
        """Replace an existing folder by an empty one with room for `size` bytes."""
        if path.is_dir():
            self.covers.setdefault(path.resolve(), (mode, size))

    def is_hidden(self, path: Path) -> bool:
        """Return True if a parent folder is covered, and no path in between is mounted again."""
        for ancestor in path.parents:
            if ancestor in self.binds:
                return False
            if ancestor in self.covers:
                return True
        return False

    def steps(self) -> list[Step]:
        """Return the steps, shallow paths first, because deeper ones depend on them."""
        needed = {path: how for path, how in self.covers.items() if not self.is_hidden(path)}
        covers = [{"kind": "cover", "path": str(p), "mode": m, "size": s} for p, (m, s) in needed.items()]
        links = [{"kind": "link", "path": str(p), "target": t} for p, t in self.links.items()]
        same = [(path, path, writable) for path, writable in self.binds.items()]
        other = [(path, source, False) for path, source in self.replaced.items()]
        binds = [{"kind": "bind", "path": str(p), "source": str(s), "writable": w} for p, s, w in [*same, *other]]
        return sorted([*covers, *links, *binds], key=lambda step: len(Path(step["path"]).parts))


def plan_mounts(
    *,
    readable: Iterable[Path],
    writable: Iterable[Path],
    hidden: Iterable[Path] = (),
    replaced: Mapping[str, Path] | None = None,
    private_scratch: bool = True,
) -> list[Step]:
    """Return the steps for a private view of the file system for another user.

    Args:
        readable: Paths that the user must be able to read.
        writable: Paths that the user must be able to write.
        hidden: Folders to cover by empty ones.
        replaced: Files of the system, and the files that replace them.
        private_scratch: Cover /tmp and similar folders by private ones.
    """
    plan = MountPlan(replaced={Path(path): file for path, file in (replaced or {}).items() if Path(path).is_file()})
    if private_scratch:
        for path in SCRATCH:
            plan.cover(path, 0o1777, SCRATCH_BYTES)
    for path in hidden:
        plan.cover(path, 0o711)
    links: dict[Path, str] = {}
    reads = [follow(path, links) for path in readable]
    writes = [follow(path, links) for path in writable]
    for path in [*reads, *writes, *links]:
        blocking = blocking_folder(path)
        if blocking is not None:
            plan.cover(blocking, 0o711)
    plan.binds.update(dict.fromkeys(writes, True))
    for path in sorted(reads, key=lambda p: len(p.parts)):
        if path not in plan.binds and plan.is_hidden(path):
            plan.binds[path] = False
    plan.links.update({path: target for path, target in links.items() if plan.is_hidden(path)})
    return plan.steps()


def follow(path: Path, links: dict[Path, str]) -> Path:
    """Return the real path, and note every symbolic link on the way, to create it again."""
    pending = list(reversed(path.absolute().parts[1:]))
    current, followed = Path("/"), 0
    while pending:
        part = pending.pop()
        if part == "..":
            current = current.parent
            continue
        candidate = current / part
        if not candidate.is_symlink() or followed >= MAX_LINKS:
            current = candidate
            continue
        followed += 1
        target = candidate.readlink()
        links[candidate] = str(target)
        if target.is_absolute():
            current = Path("/")
        pending.extend(reversed([p for p in target.parts if p != "/"]))
    return current


def blocking_folder(path: Path) -> Path | None:
    """Return the topmost parent folder that other users may not enter, or None."""
    for ancestor in reversed(path.parents):
        if ancestor.is_dir() and not ancestor.stat().st_mode & 0o001:
            return ancestor
    return None
