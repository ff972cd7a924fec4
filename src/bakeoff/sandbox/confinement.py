"""Confine a program that the user named: an MCP server, or a command of `bakeoff eval`.

Such a program sees the system, its own installation, its working folder, and the paths that its settings name. It can
change only the paths of `writable`. Its HOME and its temporary folder are new. Files that usually hold keys are hidden.
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
# What downloads need. Addresses with a password in them are not passed on.
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
_LEVELS_SEARCHED = 2  # below a folder, for files with keys
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
    """A program that the user named, and its share of this machine."""

    label: str  # how messages call it, such as "server 'time'"
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class ConfinedProgram:
    """A program that is ready to be started in a sandbox."""

    order: Order
    sandbox: str
    shared: dict[Path, bool]

    def explain(self, said: str) -> str | None:
        """Return a hint about the sandbox if a program's last output looks like a refusal; None otherwise."""
        if not _REFUSED.search(said):
            return None
        reads, writes = (
            ", ".join(str(path) for path, given in self.shared.items() if given is may) or "none"
            for may in (False, True)
        )
        return f"it runs in the {self.sandbox} sandbox (reads of your folders: {reads}; changes: {writes}): {WAY_OUT}"


@asynccontextmanager
async def confined(program: UserProgram, sandbox_name: str) -> AsyncIterator[ConfinedProgram]:
    """Open a place for a program, and yield the order that starts it there.

    Args:
        program: The program, and what its settings let it use.
        sandbox_name: `bwrap` or `process`, or `auto` for the strongest of them that works here.

    Raises:
        SandboxMissing: No such sandbox works here.
        InfraError: A path in its settings does not exist, or no user of the sandbox could use it.
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
    """Return the order for a program that the user trusts. When it ends, its supervisor ends all its processes too.

    Args:
        argv: The program, searched in the PATH of `env`, and its arguments.
        env: Its whole environment.
        cwd: The folder that it starts in.
        seconds: The time after which it is ended.
        stdin: Its standard input, unless somebody talks to it while it runs.
        output_kb: The size of each output stream that is kept. The program is ended when it writes more.
    """
    nowhere = Path(__file__).parent  # nothing is written there, so watching its size costs nothing
    limits = Limits(disk_mb=1 << 40, output_kb=output_kb)
    command = Command(tuple(argv), Place(nowhere, nowhere, nowhere), seconds, limits, stdin=stdin)
    return make_order(command, argv=argv, env=env, cwd=str(cwd.absolute()), confined=False), command


def command_in(
    program: UserProgram, sandbox: LocalSandbox, place: Place, downloads: Path | None = None
) -> tuple[LocalSandbox, Command]:
    """Return the sandbox, which now hides keys from the program, and the command that starts the program in it.

    Args:
        program: The program, and what its settings let it use.
        sandbox: The sandbox to start it in.
        place: Its private folders. The returned command may use it with another user.
        downloads: A folder in which launchers such as `npx` keep packages.
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
    """Return the sandbox of this name or, for `auto`, the strongest one of this machine for programs."""
    reasons = []
    for kind in ("bwrap", "process") if wanted == "auto" else (wanted,):
        sandbox, detail = find_bubblewrap() if kind == "bwrap" else find_process()
        if sandbox is not None:
            return sandbox
        reasons.append(f"{kind}: {detail}")
    raise SandboxMissing(f"no sandbox for programs of yours is usable here ({' | '.join(reasons)}): {WAY_OUT}")


def shared_paths(program: UserProgram, folder: Path) -> dict[Path, bool]:
    """Return the paths of this machine that a program can use, and True for those that it may change.

    These are the folder that it starts in, the paths that its arguments name, and those of its settings. Arguments that
    name a home, a missing path or a part of the kernel's file systems are left out. Settings that name one of the last
    two raise `InfraError`.
    """
    shared: dict[Path, bool] = {}
    if program.cwd is not None or not is_around_home(folder):  # else it starts in a folder of its own
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
    """Return True if a path belongs to the kernel: to its processes, settings or devices."""
    return any(path.is_relative_to(root) for root in _OF_THE_KERNEL)


def _words(program: UserProgram) -> Iterator[str]:
    for word in program.argv[1:]:
        yield from (word, word.partition("=")[2]) if word.startswith("-") else (word,)
    yield from (value for value in program.env.values() if value.startswith("/"))


def _code_folders(script: Path) -> Iterator[Path]:
    """Yield the folders that a script imports from: its own, that of its Node package, and packages further up."""
    package = next((parent for parent in script.parents if (parent / "package.json").is_file()), script.parent)
    folders = [folder for folder in (package, script.parent) if not is_around_home(folder)]
    yield folders[0] if folders else script
    if script.suffix in _OF_NODE:
        yield from (found for parent in script.parents if (found := parent / MODULES).is_dir())


def keys_in(shared: dict[Path, bool]) -> Iterator[Path]:
    """Yield files that usually hold keys in the folders that a program can read, down to a limited depth."""
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
    """Return the paths that the program needs, and those of the program that it starts in turn."""
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

    As root, we give a program a user of its own, who can use what everybody may use. If that is not enough, it runs in
    `bwrap` as root without capabilities, and sees and changes only what the sandbox shows.
    """
    if place.uid is None:
        return place
    modes = {path: path.stat().st_mode for path in shared}
    wanted = {path: (0o5 if stat.S_ISDIR(modes[path]) else 0o4) | (0o2 if may else 0) for path, may in shared.items()}
    closed = [path for path in shared if modes[path] & wanted[path] != wanted[path]]  # to some user
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
    """Copy the registry addresses from the user's npm settings, without keys. Yield the certificates that they name."""
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
    """Keep the downloads of npx, uvx and the like, separately for each program: none can change what another one runs.

    As root, each start has another user. A second start at the same time downloads into its own HOME.
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
