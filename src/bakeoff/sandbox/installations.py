"""Find the files and folders of an installation that a sandbox must show so that its programs can run.

Never a whole prefix: a program may lie in `~/bin`, and then the prefix is HOME. Of a folder that was made for an
installation, its usual folders are shown; of any other, only interpreters, shared libraries and packages.
"""

import os
import pwd
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from bakeoff.errors import InfraError
from bakeoff.protocols import Command

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix")
MODULES, CELLAR = "node_modules", "Cellar"
_MANAGED = {"versions", "installs"}  # folders in which version managers keep installed versions
_MARKERS = ("pyvenv.cfg", "conda-meta/history")  # files that only a folder for an installation has
_USUAL = ("bin", "lib", "lib32", "lib64", "libexec", "include", "share", "pyvenv.cfg")
_PACKAGES = ("lib*/node_modules", "lib*/python3*", "lib*/pypy3*")
_NEEDED = ("pyvenv.cfg", "bin/*", "lib*/lib*.so*", "lib*/lib*.dylib", *_PACKAGES)
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*t?|node(js)?|npm|npx|corepack|(npm|npx)-cli\.js|corepack\.js")
_HOMES = {Path("/home"), Path("/Users")}


def is_private(path: Path) -> bool:
    """Return whether a path is a home or the current folder, or lies around one, wherever its links lead."""
    real = path.resolve()
    return is_around_home(real) or Path().resolve().is_relative_to(real)


def is_around_home(real: Path) -> bool:
    return bool(_HOMES & {real, real.parent}) or any(home.is_relative_to(real) for home in _homes())


def _homes() -> list[Path]:
    """Return the homes that we know of: HOME may be set to another folder than the user's own."""
    homes = {os.path.expanduser("~"), "/root"}  # noqa: PTH111 - `Path.home` fails for a user without one
    for user in {os.getuid(), int(os.environ.get("SUDO_UID", os.getuid()))}:
        try:
            homes.add(pwd.getpwuid(user).pw_dir)
        except KeyError:
            continue
    # A user without a home has `/` or a folder that does not exist.
    return [Path(home).resolve() for home in homes if home != "/" and Path(home).is_dir()]


def check_shown(command: Command) -> None:
    """Raise InfraError if a sandbox would show a home, what lies around it, or what lies around the current folder.

    A person may name what lies around the current folder, but no home.
    """
    try:
        around_here: Sequence[Path] = Path().resolve().parents
    except FileNotFoundError:  # the current folder was deleted
        around_here = ()
    for path in (*command.readable, *command.shared):
        real = path.resolve()
        what = "a home" if is_around_home(real) else "the current folder" if real in around_here else None
        if what == "a home" or (what is not None and path not in command.shared):
            raise InfraError(
                f"a sandbox cannot show {path}: it is {what} or lies around it, with everything there; "
                "install the program in a folder of its own, name a folder further down, or start elsewhere",
                permanent=True,
            )


def installation(prefix: Path) -> Iterator[Path]:
    """Yield what programs that are installed below the prefix need of it."""
    if prefix.is_relative_to("/usr"):
        return
    patterns = _USUAL if _is_dedicated(prefix) and not is_private(prefix) else _NEEDED
    for pattern in patterns:
        for found in sorted(prefix.glob(pattern)):
            if _is_part(found, prefix, pattern):
                yield found


def packages(prefix: Path) -> Iterator[Path]:
    """Yield the folders of packages below a prefix that cannot be shown itself."""
    for pattern in _PACKAGES:
        yield from (found for found in sorted(prefix.glob(pattern)) if _is_part(found, prefix, pattern))


def homebrew(program: Path) -> Iterator[Path]:
    """Yield what a program of Homebrew needs, and nothing for others. Its `etc` and `var` hold users' data."""
    if CELLAR not in program.parts:
        return
    prefix = Path(*program.parts[: program.parts.index(CELLAR)])
    cellar = prefix / CELLAR
    yield cellar
    yield from packages(prefix)
    for folder in ("opt", "lib"):
        for link in sorted((prefix / folder).glob("*")):
            if link.is_symlink() and link.resolve().is_relative_to(cellar.resolve()):
                yield link


def is_managed(prefix: Path) -> bool:
    """Return whether a version manager made the folder for one version of a program."""
    return bool(_MANAGED & {prefix.parent.name, prefix.parent.parent.name})


def _is_dedicated(prefix: Path) -> bool:
    return is_managed(prefix) or any((prefix / marker).is_file() for marker in _MARKERS)


def _is_part(found: Path, prefix: Path, pattern: str) -> bool:
    """Return whether a path belongs to the installation. A link may lead out of it only to another of its kind."""
    real, kind = found.resolve(), pattern.rpartition("/")[2]
    if pattern == "bin/*" and not _INTERPRETER.fullmatch(found.name):
        return False
    if is_private(real) or not real.exists():
        return False
    if real.is_relative_to(prefix.resolve()) or real.is_relative_to("/usr"):
        return True
    if kind == "*":
        return bool(_INTERPRETER.fullmatch(real.name))
    return kind not in _USUAL and fnmatch(real.name, kind)
