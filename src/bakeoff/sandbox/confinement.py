"""Confine a program that the user chose: an MCP server, or a command of `bakeoff eval`.

The program sees the system, its installation, its working folder and the paths in its settings. It
can write only to the `writable` paths. HOME and TMPDIR are new. Files with keys are hidden.
"""

import fcntl
import os
import re
import shutil
import stat
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import with_home
from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.threads import call
from bakeoff.errors import InfraError, SandboxMissing
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Place
from bakeoff.sandbox import open_place
from bakeoff.sandbox.bubblewrap import BubblewrapSandbox, find_bubblewrap
from bakeoff.sandbox.places import give, reserved_users
from bakeoff.sandbox.process import ProcessSandbox, find_process
from bakeoff.sandbox.programs import MODULES, is_around_home, is_shim, program_path, program_roots, search_path
from bakeoff.sandbox.supervisor_client import Order, make_order

FOREVER_SECONDS = 10 * 365 * 24 * 3600.0
LIMITS = Limits(memory_mb=8192, processes=1024, disk_mb=20_480)
WAY_OUT = "give it `readable` or `writable` folders, or choose `sandbox: none` if you trust it"
PRIVATE_CERTIFICATES = Path("/etc/ssl/private")
LocalSandbox: TypeAlias = BubblewrapSandbox | ProcessSandbox
# Variables for downloads. Addresses with passwords are not passed on.
_NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "NPM_CONFIG_REGISTRY"),
    *("npm_config_registry", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"),
)
_CERTIFICATES = ("NODE_EXTRA_CA_CERTS", "PIP_CERT")
_NPM_SETTING = re.compile(r"\s*((@[\w.-]+:)?registry|cafile|https?-proxy|proxy|noproxy|strict-ssl)\s*=")
_DOWNLOADS = {"XDG_CACHE_HOME": "", "npm_config_cache": "npm", "BUN_INSTALL_CACHE_DIR": "bun", "PIPX_HOME": "pipx"}
_KEYS = (
    *("*.env", ".env.*", ".env~", "#.env#", ".envrc", ".npmrc", ".netrc", ".pypirc", ".git-credentials"),
    *(".ssh", ".aws", ".gnupg", ".docker", ".kube", ".streamlit", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "credentials.json", "service-account*.json", "secrets.toml", "secrets.y*ml"),
    *("*.tfvars", "*.tfstate"),
)
_OF_THE_KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))
_UNSEARCHED = {"node_modules", ".git", ".venv", "venv", "__pycache__"}
_LEVELS_SEARCHED = 2  # how deep files with keys are searched for
_OF_NODE = (".js", ".mjs", ".cjs", ".ts")
_CODE = (*_OF_NODE, ".py", ".jar", ".rb", ".php", ".sh")
LAUNCHERS = {"npx", "bunx", "pnpx", "uvx", "pipx"}
"""Programs that download a package and run it."""

_COMPANIONS = {"uvx": "uv", "bunx": "bun", "pnpx": "pnpm", "pnpm": "node", "npx": "node", "npm": "node"}
_REFUSED = re.compile(
    r"EACCES|EPERM|EROFS|ENOENT|[Pp]ermission denied|[Rr]ead-only|[Nn]o such file|not found|[Cc]annot (find|open)|"
    r"[Uu]nable to open|not a directory|[Dd]oes not exist|No module named|bwrap:"
)
_CREDENTIALS = re.compile(r"://[^/]*@")


@dataclass(frozen=True, slots=True)
class UserProgram:
    """A program that the user chose, and what it may use on this machine."""

    label: str  # its name in messages, such as "server 'time'"
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class ConfinedProgram:
    """A program that is ready to start in a sandbox."""

    order: Order
    sandbox: str
    shared: dict[Path, bool]

    def explain(self, said: str) -> str | None:
        """Return a hint if a program's last output looks refused by the sandbox, or None."""
        if not _REFUSED.search(said):
            return None
        reads, writes = (
            ", ".join(str(path) for path, given in self.shared.items() if given is may) or "none"
            for may in (False, True)
        )
        return f"it runs in the {self.sandbox} sandbox (reads of your folders: {reads}; changes: {writes}): {WAY_OUT}"


@asynccontextmanager
async def confined(program: UserProgram, sandbox_name: str) -> AsyncIterator[ConfinedProgram]:
    """Open a place for a program, and yield the program, ready to start there.

    Args:
        program: The program and its settings.
        sandbox_name: `bwrap`, `process`, or `auto` for the stronger one that works here.

    Raises:
        SandboxMissing: The sandbox does not work here.
        InfraError: A path in the settings is missing, or unusable in the sandbox.
    """

    def confine(downloads: Path | None) -> ConfinedProgram:
        hiding, command = command_in(program, sandbox, place, downloads)
        shared = {path: may for path, may in command.shared.items() if path != downloads}
        return ConfinedProgram(hiding.order(command), hiding.name, shared)

    sandbox = await call(_found_sandbox, sandbox_name)
    async with open_place() as place:
        with _cache_of(program, place) as downloads:
            yield await call(confine, downloads)


def unconfined_command(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    seconds: float,
    stdin: bytes = b"",
    output_kb: int = Limits().output_kb,
) -> tuple[Order, Command]:
    """Return the order for a trusted program. When it ends, the supervisor ends all its processes.

    Args:
        argv: The program, found by the PATH in `env`, and its arguments.
        env: The whole environment.
        cwd: The folder to start in.
        seconds: The time limit.
        stdin: The standard input, unless the caller writes it during the run.
        output_kb: The limit for each output stream, above which the program is ended.
    """
    nowhere = Path(__file__).parent  # nothing is written there, so watching it is cheap
    limits = Limits(disk_mb=1 << 40, output_kb=output_kb)
    command = Command(tuple(argv), Place(nowhere, nowhere, nowhere), seconds, limits, stdin=stdin)
    return make_order(command, argv=argv, env=env, cwd=str(cwd.absolute()), confined=False), command


def command_in(
    program: UserProgram, sandbox: LocalSandbox, place: Place, downloads: Path | None = None
) -> tuple[LocalSandbox, Command]:
    """Return the sandbox, now hiding files with keys, and the command that runs the program in it.

    Args:
        program: The program and its settings.
        sandbox: The sandbox to start it in.
        place: Its private folders. The returned command may run as another user.
        downloads: A folder for the packages of launchers such as `npx`.
    """
    folder = (program.cwd or Path()).resolve()
    if not folder.is_dir():
        raise InfraError(f"{program.label} cannot start in {folder}: there is no such folder", permanent=True)
    shared = shared_paths(program, folder)
    hidden = [path for path in keys_in(shared) if path not in shared]
    starts_there = folder in shared
    command = Command(
        _argv(program, folder),
        _with_user(place, program, shared, sandbox),
        FOREVER_SECONDS,
        LIMITS,
        env={**_variables(downloads), **({"PWD": str(folder)} if starts_there else {}), **program.env},
        network=True,
        readable=(*_program(program, folder), *_copy_npm_settings(place)),
        shared={**shared, **({downloads: True} if downloads else {})},
        cwd=folder if starts_there else None,
    )
    return replace(sandbox, hidden=(*sandbox.hidden, *hidden, PRIVATE_CERTIFICATES)), command


@cache
def _found_sandbox(wanted: str) -> LocalSandbox:
    """Return the sandbox of this name or, for `auto`, the strongest one for programs."""
    reasons = []
    for kind in ("bwrap", "process") if wanted == "auto" else (wanted,):
        sandbox, detail = find_bubblewrap() if kind == "bwrap" else find_process()
        if sandbox is not None:
            return sandbox
        reasons.append(f"{kind}: {detail}")
    raise SandboxMissing(f"no sandbox for programs of yours is usable here ({' | '.join(reasons)}): {WAY_OUT}")


def shared_paths(program: UserProgram, folder: Path) -> dict[Path, bool]:
    """Return the host paths that a program can use, each with True if it may write there.

    These are the start folder, and the paths in the arguments and settings. Arguments that name a
    home, a missing path or a kernel file system are left out. Settings that name a missing path or
    a kernel file system raise `InfraError`.
    """
    shared: dict[Path, bool] = {}
    if program.cwd is not None or not is_around_home(folder):  # else it starts in a private folder
        shared[folder] = False
    for text in _words(program):
        path = (folder / text).resolve()
        is_there = text and os.path.exists(path)  # noqa: PTH110 - no error for a text that is too long for a name
        if is_there and not is_around_home(path) and not _is_of_the_kernel(path):
            is_code = path.suffix in _CODE and path.is_file()
            shared |= dict.fromkeys(_code_folders(path) if is_code else [path], False)
    for may_change, paths in ((False, program.readable), (True, program.writable)):
        for given in paths:
            path, what = (folder / with_home(given)).resolve(), "writable" if may_change else "readable"
            if _is_of_the_kernel(path):
                raise InfraError(f"{program.label}: `{what}` names {path}, which no sandbox shows: leave it out")
            if not path.exists():
                raise InfraError(f"{program.label}: `{what}` names {path}, which is not there: create it first")
            shared[path] = may_change
    return {path: may for path, may in shared.items() if not path.is_relative_to("/usr") or may}


def _is_of_the_kernel(path: Path) -> bool:
    """Return True if a path is in a kernel file system, such as /proc."""
    return any(path.is_relative_to(root) for root in _OF_THE_KERNEL)


def _words(program: UserProgram) -> Iterator[str]:
    for word in program.argv[1:]:
        yield from (word, word.partition("=")[2]) if word.startswith("-") else (word,)
    yield from (value for value in program.env.values() if value.startswith("/"))


def _code_folders(script: Path) -> Iterator[Path]:
    """Yield the folders that a script imports from: its own, its package's, and those above."""
    package = next((parent for parent in script.parents if (parent / "package.json").is_file()), script.parent)
    folders = [folder for folder in (package, script.parent) if not is_around_home(folder)]
    yield folders[0] if folders else script
    if script.suffix in _OF_NODE:
        yield from (found for parent in script.parents if (found := parent / MODULES).is_dir())


def keys_in(shared: dict[Path, bool]) -> Iterator[Path]:
    """Yield files that usually hold keys in the program's folders, to a limited depth."""
    for root in shared:
        for folder, folders, files in os.walk(root):
            found = [
                name for name in (*folders, *files) if any(PurePosixPath(name.lower()).match(key) for key in _KEYS)
            ]
            yield from (Path(folder, name) for name in found)
            deep = len(Path(folder).relative_to(root).parts) >= _LEVELS_SEARCHED
            folders[:] = [name for name in folders if not deep and name not in {*_UNSEARCHED, *found}]


def _argv(program: UserProgram, folder: Path) -> tuple[str, ...]:
    name = program.argv[0]
    if "/" in name:
        name = str(folder / with_home(name))
    elif (found := shutil.which(name, path=search_path(os.environ))) is None:
        raise InfraError(f"cannot run {name!r}: it is not on PATH; install it, or write its whole path")
    elif is_shim(found):
        name = program_path(name) or name
    return (name, *program.argv[1:])


def _program(program: UserProgram, folder: Path) -> tuple[Path, ...]:
    """Return the paths that the program needs, including those of a program that it starts."""
    command = program.argv[0]
    names = [command, *([_COMPANIONS[command]] if command in _COMPANIONS else [])]
    found = [str(folder / with_home(name)) if "/" in name else program_path(name) for name in names]
    certificates = [Path(os.environ[name]) for name in _CERTIFICATES if os.environ.get(name)]
    return (*(root for path in found if path for root in program_roots(path)), *certificates)


def _variables(downloads: Path | None) -> dict[str, str]:
    passed = {name: os.environ[name] for name in (*_NETWORK, *_CERTIFICATES) if os.environ.get(name)}
    passed = {name: value for name, value in passed.items() if not _CREDENTIALS.search(value)}
    inner = _DOWNLOADS if downloads else {}
    return passed | {name: str(downloads / folder) for name, folder in inner.items() if downloads}


def _with_user(place: Place, program: UserProgram, shared: dict[Path, bool], sandbox: LocalSandbox) -> Place:
    """Return the place with a user who may use the shared paths.

    If we are root, the program gets its own user, who can use world-accessible paths. If that is
    not enough, it runs in `bwrap` as root without capabilities, limited to what the sandbox shows.
    """
    if place.uid is None:
        return place
    modes = {path: path.stat().st_mode for path in shared}
    wanted = {path: (0o5 if stat.S_ISDIR(modes[path]) else 0o4) | (0o2 if may else 0) for path, may in shared.items()}
    closed = [path for path in shared if modes[path] & wanted[path] != wanted[path]]  # to others
    if not closed:
        return place
    if not isinstance(sandbox, BubblewrapSandbox) or any(path.stat().st_uid for path in closed):
        raise InfraError(
            f"{program.label}: {closed[0]} cannot be {'`writable`' if shared[closed[0]] else 'read'} in the "
            f"{sandbox.name} sandbox, because root's programs run as another user: run Bakeoff as the owner of it, "
            "install bubblewrap and give it to root, open it to everybody, or choose `sandbox: none` if you trust it",
            permanent=True,
        )
    for folder in (place.work, place.home, place.tmp):
        os.chown(folder, 0, 0)
    return replace(place, uid=None)


def _copy_npm_settings(place: Place) -> Iterator[Path]:
    """Copy registry addresses, not keys, from npm settings. Yield the named certificates."""
    try:
        lines = Path("~/.npmrc").expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError, RuntimeError):
        return
    kept = [line for line in lines if _NPM_SETTING.match(line) and not _CREDENTIALS.search(line)]
    if kept:
        copy = place.home / ".npmrc"
        copy.write_text("\n".join([*kept, ""]), "utf-8")
        copy.chmod(0o644)
    for line in kept:
        name, _, value = line.partition("=")
        if name.strip() == "cafile" and Path(value.strip()).is_file():
            yield Path(value.strip())


@contextmanager
def _cache_of(program: UserProgram, place: Place) -> Iterator[Path | None]:
    """Yield a folder for downloads of npx, uvx and others, separate for each program.

    If we are root, each start has another user, and a second start at the same time gets None.
    """
    if PurePosixPath(program.argv[0]).name not in {*LAUNCHERS, *_COMPANIONS, *_COMPANIONS.values()} - {"node"}:
        yield None
        return
    folder = cache_folder() / "mcp" / fingerprint(program.argv[0], tuple(program.argv[1:]))[:16]
    (folder / "downloads").mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        if place.uid is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            os.chown(folder / "downloads", place.uid, place.uid)
            give(folder / "downloads", place.uid, ours=reserved_users())
        yield folder / "downloads"
