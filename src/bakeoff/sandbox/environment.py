"""Build the environment of a sandboxed command from an allow-list, because a deny-list would miss some API key."""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path

import bakeoff
from bakeoff.protocols import Command, Place
from bakeoff.sandbox.programs import installation, interpreter_roots, program_path, without_homes

ALLOWED = frozenset({"LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR"})
ALLOWED_PREFIX = "LC_"
FIXED = {"LANG": "C.UTF-8", "TZ": "UTC"}
PACKAGE = Path(bakeoff.__file__).parent  # it contains bundled references, which no subject may read
_SITES = ("lib*/py*/*-packages", "local/lib*/py*/*-packages", "store/*-bakeoff-*/lib/py*/*-packages")
INSTALLED = (*_SITES, "py*/*-packages", "*-packages", ".")  # below a prefix, and below folders in it
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def inherited(host: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of our environment that are passed on, without PATH."""
    return {name: value for name, value in host.items() if name in ALLOWED or name.startswith(ALLOWED_PREFIX)}


def search_path(host: Mapping[str, str]) -> str:
    """Return a PATH with our Python and Node first. Relative entries are dropped: they would search the subject's
    folder.
    """
    return _with_ours_first(host.get("PATH", DEFAULT_PATH))


@lru_cache(maxsize=16)
def _with_ours_first(path: str) -> str:
    node = program_path("node")
    ours = [str(Path(sys.prefix) / "bin"), *([str(Path(node).parent)] if node else [])]
    theirs = [entry for entry in path.split(os.pathsep) if entry.startswith("/")]
    return os.pathsep.join(dict.fromkeys(ours + theirs))


def private(inside: Place) -> dict[str, str]:
    """Return the variables that point into the place, as seen from inside the sandbox."""
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
    """Return the complete environment of a command that runs on the host's files."""
    return {**passed_on(command), "PATH": search_path(os.environ), **private(inside), **command.env}


def passed_on(command: Command) -> dict[str, str]:
    """Return what a command learns of the host's language and time: nothing if it is graded."""
    return dict(FIXED) if command.graded else inherited(os.environ)


@cache
def toolchain() -> tuple[Path, ...]:
    """Return the host paths that our Python and Node need."""
    interpreters = [sys.executable, getattr(sys, "_base_executable", None), program_path("node")]
    roots = [root for program in interpreters if program for root in interpreter_roots(program)]
    roots += [root for prefix in (sys.prefix, sys.base_prefix) for root in installation(Path(prefix))]
    return without_homes(dict.fromkeys(roots))


def our_packages(roots: Iterable[Path]) -> list[Path]:
    """Return the folder of this package, and of every other copy of it that is installed below the roots."""
    return list(dict.fromkeys([PACKAGE, *(copy for root in roots for copy in _installed_copies(root))]))


@lru_cache(maxsize=256)
def _installed_copies(root: Path) -> tuple[Path, ...]:
    real = root.resolve()
    found = [copy.resolve() for pattern in INSTALLED for copy in real.glob(f"{pattern}/{PACKAGE.name}/bundled")]
    return tuple(
        root / copy.relative_to(real) if copy.is_relative_to(real) else copy for copy in (path.parent for path in found)
    )
