"""Find a program on this machine, and the paths that a sandbox must show so that it can run.

Only the program's installation is shown, never the user's HOME, the current folder or a folder
around them. A prefix is not shown as a whole, because the prefix of a program in `~/bin` is HOME.
In a folder made for an installation, the usual subfolders are shown; in others, only interpreters,
shared libraries and packages.

A command's environment is an allow-list, because a deny-list could miss an API key.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import bakeoff
from bakeoff.errors import InfraError
from bakeoff.protocols import Command, Place

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix")
MODULES, CELLAR = "node_modules", "Cellar"
_MANAGED = {"versions", "installs"}  # folders of installed versions in version managers
_MARKERS = ("pyvenv.cfg", "conda-meta/history")  # files that mark the folder of an installation
_USUAL = ("bin", "lib", "lib32", "lib64", "libexec", "include", "share", "pyvenv.cfg")
_PACKAGES = ("lib*/node_modules", "lib*/python3*", "lib*/pypy3*")
_NEEDED = ("pyvenv.cfg", "bin/*", "lib*/lib*.so*", "lib*/lib*.dylib", *_PACKAGES)
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*t?|node(js)?|npm|npx|corepack|(npm|npx)-cli\.js|corepack\.js")
_HOMES = {Path("/home"), Path("/Users")}

_SECONDS = 30.0
_VOLTA = "volta-shim"


def is_private(path: Path) -> bool:
    """Return True if the real path is, or contains, a home or the current folder."""
    real = path.resolve()
    return is_around_home(real) or Path().resolve().is_relative_to(real)


def is_around_home(real: Path) -> bool:
    """Return True if a resolved path is a home, contains one, or is beside one."""
    return bool(_HOMES & {real, real.parent}) or any(home.is_relative_to(real) for home in _homes())


def _homes() -> list[Path]:
    """Return the known homes, since HOME may differ from the user's own home."""
    homes = {os.path.expanduser("~"), "/root"}  # noqa: PTH111 - `Path.home` fails for a user without one
    for user in {os.getuid(), int(os.environ.get("SUDO_UID", os.getuid()))}:
        try:
            homes.add(pwd.getpwuid(user).pw_dir)
        except KeyError:
            continue
    # A user without a home has `/` or a folder that does not exist.
    return [Path(home).resolve() for home in homes if home != "/" and Path(home).is_dir()]


def check_shown(command: Command) -> None:
    """Raise InfraError if a sandbox would show a home, or a folder around it or the current folder.

    Users may share folders around the current folder, but not a home.
    """
    try:
        around_here: Sequence[Path] = Path().resolve().parents
    except FileNotFoundError:  # the current folder no longer exists
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
    """Yield the parts of a prefix that its programs need."""
    if prefix.is_relative_to("/usr"):
        return
    dedicated = is_managed(prefix) or any((prefix / marker).is_file() for marker in _MARKERS)
    patterns = _USUAL if dedicated and not is_private(prefix) else _NEEDED
    for pattern in patterns:
        for found in sorted(prefix.glob(pattern)):
            if _is_part(found, prefix, pattern):
                yield found


def packages(prefix: Path) -> Iterator[Path]:
    """Yield the package folders in a prefix that must not be shown as a whole."""
    for pattern in _PACKAGES:
        yield from (found for found in sorted(prefix.glob(pattern)) if _is_part(found, prefix, pattern))


def homebrew(program: Path) -> Iterator[Path]:
    """Yield the paths that a Homebrew program needs, without user data in `etc` and `var`."""
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
    """Return True if a version manager made the folder for one version of a program."""
    return bool(_MANAGED & {prefix.parent.name, prefix.parent.parent.name})


def _is_part(found: Path, prefix: Path, pattern: str) -> bool:
    """Return True if a path belongs to the installation. Links may lead out to similar files."""
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


def program_path(program: str) -> str | None:
    """Return the program's path. For a version manager's shim, return the real program's path.

    npm's links are followed: sandboxes show them as files, but scripts need modules beside them.
    """
    found = which(program)
    if found and is_shim(found):
        found = _behind(found)
    if found is None:
        return None
    target = Path(found).resolve()
    return str(target) if MODULES in target.parts else found


def which(program: str) -> str | None:
    """Return a program's absolute path, since a relative path depends on the start folder."""
    found = shutil.which(program)
    # Links stay: a program may look for files beside the link.
    return str(Path(found).absolute()) if found else None


def is_shim(path: str) -> bool:
    """Return True for a version manager's script that chooses the version at each start."""
    return Path(path).parent.name == "shims" or Path(path).resolve().name == _VOLTA


@lru_cache(maxsize=256)
def _behind(shim: str) -> str | None:
    """Return the program that a shim starts, according to its version manager, or None."""
    root, name = Path(shim).parent.parent, Path(shim).name
    manager = root.name.lstrip(".")
    asked = shutil.which(str(root / "bin" / manager)) or shutil.which(manager)
    if asked is None:
        return None
    said = (said_by(asked, "which", name) or "").strip()
    return shutil.which(said) if "/" in said and not is_shim(said) else None


def program_roots(program: str) -> tuple[Path, ...]:
    """Return the host paths that a sandbox must show for the program."""
    if "/" not in program:
        return ()
    path = Path(program)
    return without_homes(root for end in (path, path.resolve()) for root in _roots(end))


def without_homes(roots: Iterable[Path]) -> tuple[Path, ...]:
    """Return the roots. A root around HOME or the current folder is replaced by its packages."""
    return tuple(dict.fromkeys(shown for root in roots for shown in (packages(root) if is_private(root) else [root])))


def _roots(path: Path) -> Iterator[Path]:
    yield path
    parts = path.parts
    for parent in path.parents:
        if (parent / "pyvenv.cfg").is_file():
            yield from installation(parent)
            link = parent / "bin" / "python"
            found = link.resolve()
            if found.exists() and not found.is_relative_to("/usr"):
                yield link
                yield found
                yield from homebrew(found)
                yield from installation(found.parent.parent)
            return
    if MODULES in parts:
        yield Path(*parts[: parts.index(MODULES) + 1])
    elif CELLAR in parts:
        yield from homebrew(path)
    elif path.parent.name == "bin" and is_managed(path.parent.parent):
        yield from installation(path.parent.parent)


def interpreter_roots(program: str) -> tuple[Path, ...]:
    """Return the paths that an interpreter needs, including the packages beside it."""
    prefixes = dict.fromkeys(path.parent.parent for path in (Path(program), Path(program).resolve()))
    beside = [path for prefix in prefixes for path in installation(prefix)]
    return tuple(dict.fromkeys([Path(program), *program_roots(program), *beside]))


def said_by(*argv: str, **where: Any) -> str | None:
    """Return the output of a program on this machine; None if it fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False, **where
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).decode(errors="replace") if done.returncode == 0 else None


ALLOWED = frozenset({"LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR"})
ALLOWED_PREFIX = "LC_"
FIXED = {"LANG": "C.UTF-8", "TZ": "UTC"}
PACKAGE = Path(bakeoff.__file__).parent  # contains references, which subjects must not read
_SITES = ("lib*/py*/*-packages", "local/lib*/py*/*-packages", "store/*-bakeoff-*/lib/py*/*-packages")
INSTALLED = (*_SITES, "py*/*-packages", "*-packages", ".")  # package folders, relative to a prefix
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def inherited(host: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are passed on from our environment, without PATH."""
    return {name: value for name, value in host.items() if name in ALLOWED or name.startswith(ALLOWED_PREFIX)}


def search_path(host: Mapping[str, str]) -> str:
    """Return a PATH with our Python and Node first. Relative entries are unsafe and dropped."""
    return _with_ours_first(host.get("PATH", DEFAULT_PATH))


@lru_cache(maxsize=16)
def _with_ours_first(path: str) -> str:
    node = program_path("node")
    ours = [str(Path(sys.prefix) / "bin"), *([str(Path(node).parent)] if node else [])]
    theirs = [entry for entry in path.split(os.pathsep) if entry.startswith("/")]
    return os.pathsep.join(dict.fromkeys(ours + theirs))


def private(inside: Place) -> dict[str, str]:
    """Return the variables that point into the place, as the command sees it."""
    tmp = str(inside.tmp)
    return {
        "HOME": str(inside.home),
        "PWD": str(inside.work),
        "TMPDIR": tmp,
        "TMP": tmp,
        "TEMP": tmp,
        "USER": "trial",
        "LOGNAME": "trial",
        "SHELL": "/bin/sh",
    }


def environment(inside: Place, command: Command) -> dict[str, str]:
    """Return the complete environment of a command on the host's file system."""
    return {**passed_on(command), "PATH": search_path(os.environ), **private(inside), **command.env}


def passed_on(command: Command) -> dict[str, str]:
    """Return the host's language and time variables, or fixed ones for a graded command."""
    return dict(FIXED) if command.graded else inherited(os.environ)


@cache
def toolchain() -> tuple[Path, ...]:
    """Return the host paths that our Python and Node need."""
    interpreters = [sys.executable, getattr(sys, "_base_executable", None), program_path("node")]
    roots = [root for program in interpreters if program for root in interpreter_roots(program)]
    roots += [root for prefix in (sys.prefix, sys.base_prefix) for root in installation(Path(prefix))]
    return without_homes(dict.fromkeys(roots))


def our_packages(roots: Iterable[Path]) -> list[Path]:
    """Return the folders of this package and of its other copies below the roots."""
    return list(dict.fromkeys([PACKAGE, *(copy for root in roots for copy in _installed_copies(root))]))


@lru_cache(maxsize=256)
def _installed_copies(root: Path) -> tuple[Path, ...]:
    real = root.resolve()
    found = [copy.resolve() for pattern in INSTALLED for copy in real.glob(f"{pattern}/{PACKAGE.name}/bundled")]
    return tuple(
        root / copy.relative_to(real) if copy.is_relative_to(real) else copy for copy in (path.parent for path in found)
    )
