"""A corpus of hostile trees: what may be taken out of each, and why the rest is refused."""

import os
import socket
import stat
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff._kernel.files import name_problem
from bakeoff.errors import InfraError
from bakeoff.sandbox import take
from bakeoff.sandbox.untrusted_files import MAX_FOLDERS_DEEP, open_folder, write_below

SECRET = b"the reference solution"
LIMITS = {"max_bytes": 10_000, "max_files": 5}
EVERYTHING = ("**",)


@dataclass(frozen=True)
class Tree:
    """`make` gets the root of the hostile tree; a file with the secret lies beside that root."""

    name: str
    make: Callable[[Path], object]
    why: str  # part of the one refusal that is expected
    patterns: tuple[str, ...] = EVERYTHING
    needs_root: bool = False


def fifo(root: Path) -> None:
    os.mkfifo(root / "pipe")


def unix_socket(root: Path) -> None:
    here = Path.cwd()
    os.chdir(root)  # a socket's path has room for 108 characters
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.chdir(here)


def device(kind: int, number: tuple[int, int]) -> Callable[[Path], None]:
    return lambda root: os.mknod(root / "device", kind | 0o666, os.makedev(*number))


def link_to(target: str, name: str = "link") -> Callable[[Path], None]:
    return lambda root: (root / name).symlink_to(target)


def linked_folder(root: Path) -> None:
    (root / "src").symlink_to(root.parent / "outside")


def link_loop(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")


def hard_link(root: Path) -> None:
    (root / "stolen").hardlink_to(root.parent / "outside" / "secret")


def hard_link_within(root: Path) -> None:
    (root / "one").write_bytes(b"1")
    (root / "two").hardlink_to(root / "one")


def deep(levels: int) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        folder = root.joinpath(*["d"] * levels)
        folder.mkdir(parents=True)
        (folder / "leaf").write_bytes(b"x")

    return make


def sparse(root: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 40)


def named(name: str | bytes) -> Callable[[Path], object]:
    return lambda root: (root / os.fsdecode(name)).write_bytes(b"x")


def many(root: Path) -> None:
    for number in range(6):
        (root / f"file{number}").write_bytes(b"x")


def together_too_large(root: Path) -> None:
    for name in "ab":
        (root / name).write_bytes(b"x" * 6_000)


def case_twins(root: Path) -> None:
    (root / "Main.py").write_bytes(b"1")
    (root / "main.py").write_bytes(b"2")


def folder_for_a_file(root: Path) -> None:
    (root / "solution.py").mkdir()


def nothing(root: Path) -> None:
    pass


def folder_named(name: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / name).mkdir()
        (root / name / "file").write_bytes(b"x")

    return make


HOSTILE = (
    Tree("a link to an absolute path", link_to("/etc/passwd"), "symbolic link"),
    Tree("a link out of the tree", link_to("../outside/secret"), "symbolic link"),
    Tree("a link to a sibling", link_to("other.py", "solution.py"), "symbolic link", ("solution.py",)),
    Tree("a link to nowhere", link_to("missing"), "symbolic link"),
    Tree("a link to itself", link_to("link"), "symbolic link"),
    Tree("links in a loop", link_loop, "symbolic link"),
    Tree("a link to a process's root", link_to("/proc/self/root/etc/passwd"), "symbolic link"),
    Tree("a linked folder, by glob", linked_folder, "symbolic link", ("src/*",)),
    Tree("a linked folder, by path", linked_folder, "symbolic link", ("src/secret",)),
    Tree("a linked folder, by any depth", linked_folder, "symbolic link", ("**/secret",)),
    Tree("a hard link to a secret", hard_link, "hard link"),
    Tree("a hard link within the tree", hard_link_within, "hard link"),
    Tree("a named pipe, which blocks whoever opens it", fifo, "named pipe"),
    Tree("a socket", unix_socket, "socket"),
    Tree("an endless device", device(stat.S_IFCHR, (1, 5)), "character device", needs_root=True),
    Tree("a disk", device(stat.S_IFBLK, (7, 0)), "block device", needs_root=True),
    Tree("a file that says it has a terabyte", sparse, "too large"),
    Tree("a file one byte too large", lambda root: (root / "f").write_bytes(b"x" * 10_001), "too large"),
    Tree("files that are too large together", together_too_large, "too large"),
    Tree("too many files", many, "one file too many"),
    Tree("too deep", deep(MAX_FOLDERS_DEEP + 1), "folders deep"),
    Tree("far too deep", deep(900), "folders deep"),
    Tree("a name that is not UTF-8", named(b"\xff\xfe.py"), "not UTF-8"),
    Tree("a new line in a name", named("a\nb.py"), "control or invisible"),
    Tree("a terminal escape in a name", named("\x1b]0;owned\x07.py"), "control or invisible"),
    Tree("a name that reads backwards", named("gpj.\u202eyp.exe"), "control or invisible"),
    Tree("a name with no width", named("main\u200b.py"), "control or invisible"),
    Tree("a name in another Unicode form", named(unicodedata.normalize("NFD", "é.py")), "NFC"),
    Tree("a name that is an option", named("-rf"), "dash"),
    Tree("a name with a backslash", named("..\\..\\evil.py"), "backslash"),
    Tree("a name that ends in a space", named("main.py "), "white space"),
    Tree("names that differ in case only", case_twins, "case only"),
    Tree("an odd folder name", folder_named("a\tb"), "control or invisible"),
    Tree("a folder where a file is declared", folder_for_a_file, "is a folder", ("solution.py",)),
    Tree("a declared file that is not there", nothing, "not there", ("solution.py",)),
    Tree("a pattern that climbs out", nothing, "'..'", ("../outside/secret",)),
    Tree("a pattern that climbs out later", nothing, "'..'", ("a/../../outside/secret",)),
    Tree("an absolute pattern", nothing, "not a relative path", ("/etc/passwd",)),
    Tree("an empty pattern", nothing, "not a relative path", ("",)),
    Tree("a pattern with a NUL", nothing, "NUL", ("a\0b",)),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    (tmp_path / "hostile").mkdir()
    (tmp_path / "trusted").mkdir()
    return tmp_path / "hostile"


@pytest.mark.parametrize("tree", HOSTILE, ids=lambda tree: tree.name.replace(" ", "-"))
def test_a_hostile_tree_gives_nothing_but_plain_files_and_says_why(tree: Tree, root: Path) -> None:
    if tree.needs_root and os.geteuid() != 0:
        pytest.skip("only root can make a device file")
    tree.make(root)

    taken = take(root, tree.patterns, **LIMITS)

    assert [why for why in taken.refused.values() if tree.why in why], taken.refused
    assert SECRET not in taken.files.values()
    assert all(path.isprintable() for path in taken.refused)
    assert len(taken.files) <= LIMITS["max_files"]
    assert all((root / name).is_file() and not (root / name).is_symlink() for name in taken.files)


def test_globs_take_what_they_name_and_look_nowhere_else(root: Path) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/b.txt", "node_modules/x/d.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "node_modules" / "link.py").symlink_to("/etc/passwd")

    assert take(root, ["*.py"], **LIMITS).files == {"a.py": b"a.py"}
    assert set(take(root, ["src/**/*.py", "a.p[xyz]"], **LIMITS).files) == {"a.py", "src/b.py", "src/deep/c.py"}
    assert set(take(root, ["src/?.*"], **LIMITS).files) == {"src/b.py", "src/b.txt"}
    assert set(take(root, ["src/[!c].py"], **LIMITS).files) == {"src/b.py"}
    assert take(root, ["src/*.py"], **LIMITS).refused == {}


def written(folder: Path, path: str) -> str:
    """Return what `write_below` says of writing a file there."""
    with open_folder(folder) as descriptor:
        return write_below(descriptor, path, b"mine", 0o644)


def test_a_link_at_the_destination_is_replaced_and_never_written_through(root: Path) -> None:
    secret, trusted = root.parent / "outside" / "secret", root.parent / "trusted"
    (trusted / "solution.py").symlink_to(secret)

    assert written(trusted, "solution.py") == ""

    assert secret.read_bytes() == SECRET
    assert (trusted / "solution.py").read_bytes() == b"mine"
    assert not (trusted / "solution.py").is_symlink()
    assert stat.S_IMODE((trusted / "solution.py").stat().st_mode) == 0o644


def test_a_linked_folder_at_the_destination_is_not_entered(root: Path) -> None:
    (root.parent / "trusted" / "src").symlink_to(root.parent / "outside")
    assert "destination" in written(root.parent / "trusted", "src/secret")
    assert (root.parent / "outside" / "secret").read_bytes() == SECRET


def test_a_file_that_stands_where_a_folder_must_go_is_reported(root: Path) -> None:
    (root.parent / "trusted" / "src").write_bytes(b"")
    assert written(root.parent / "trusted", "src/a") == "cannot be written at its destination: Not a directory"


def test_a_root_that_is_itself_a_link_is_refused(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    with pytest.raises(InfraError, match="alias is not a folder"):
        take(root.parent / "alias", EVERYTHING, **LIMITS)


@given(st.text(min_size=1, max_size=40))
def test_a_name_that_passes_is_printable_and_one_plain_component(name: str) -> None:
    if not name_problem(name):
        assert "\\" not in name
        assert "\n" not in name
        assert "\x1b" not in name
        assert name.encode().decode() == name
        assert name == name.strip()
