"""Run a track's own test command, if the user wants that, and give its packages to agents.

The part of a command that installs packages runs once, with a network and without candidates. The
tests then run without a network. Their exit code and reports come from the candidate's sandbox, so
they are only claims, which `bakeoff.grading` confirms with our own runner and twins of the tests.
Agents that run an exercise's tests get the packages linked into their workspace.
"""

import asyncio
import json
import os
import platform
import re
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.json import json_object
from bakeoff._kernel.model import fingerprint
from bakeoff.errors import InfraError
from bakeoff.plan import Grading, Limits
from bakeoff.protocols import Command, Place, Sandbox
from bakeoff.sandbox import hand_over, inside, open_place, put_files, take
from bakeoff.sandbox.programs import program_path, program_roots, said_by, search_path, without_homes
from bakeoff.toolchains.command_reports import MAX_REPORT_SIZE, CommandReport
from bakeoff.toolchains.install import JEST_SOURCES, install_jest, install_once, output_of
from bakeoff.toolchains.outcome import TestRun, check_program, last_output, stopped_by_limit
from bakeoff.toolchains.tracks import TRACKS, Track, split_command

LIMITS = Limits(memory_mb=4096, processes=256, disk_mb=2048, output_kb=4096)
INSTALL_SECONDS = 900.0
_MANIFESTS = re.compile(
    r"(?:package(?:-lock)?\.json|yarn\.lock|pnpm-\w+\.yaml|\.yarnrc(?:\.yml)?|\.npmrc|requirements\S*\.txt|test/(?:catch\.hpp|tests-main\.cpp))"
)
_LOCK_FILES = ("yarn.lock", "package-lock.json", "pnpm-lock.yaml")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_NETWORK_VARIABLES = ("NODE_EXTRA_CA_CERTS", *_PROXIES, *map(str.lower, _PROXIES))
_MANAGERS = {
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "COREPACK_ENABLE_AUTO_PIN": "0",
    "YARN_ENABLE_GLOBAL_CACHE": "0",
    "YARN_ENABLE_TELEMETRY": "0",
    "YARN_NODE_LINKER": "node-modules",  # a folder that can be linked, unlike Plug'n'Play
}
_RESOURCES = ("src/main/resources", "src/test/resources")
_COMPILERS = {"GOTOOLCHAIN": "local", "GOPROXY": "off", "CARGO_NET_OFFLINE": "true"}
_DESCRIPTIVE = ("name", "description", "version", "author", "contributors", "keywords", "repository")
_NAME = "exercise"

_MODULES = "node_modules"
_SETTINGS = "tsconfig.json"


@dataclass(frozen=True, slots=True)
class BroughtFiles:
    """Paths and variables that commands in the workspace need to use its packages."""

    readable: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def tools_of(track: Track, sandbox: Sandbox) -> BroughtFiles:
    """Return the paths of a track's compilers on this machine; empty in a container."""
    # Compiled classes come last, so that answers cannot replace library classes.
    libraries = {"CLASSPATH": ":".join((*track.jars, *_RESOURCES, "build"))} if track.jars else {}
    if not track.programs or sandbox.name == "docker":
        return BroughtFiles(env=libraries)
    found = _tools_of(track, search_path(os.environ))
    return replace(found, env={**found.env, **libraries})


@lru_cache(maxsize=16)
def _tools_of(track: Track, usual_path: str) -> BroughtFiles:
    found = [path for program in track.programs if (path := program_path(program)) is not None]
    folders, roots = [Path(path).parent for path in found], [root for path in found for root in program_roots(path)]
    # Rustup and Go put only links into PATH. Rustup looks for the compiler in HOME,
    # which may differ from the HOME of its installation.
    rustup = next((home for folder in folders if (home := folder.parent.with_name(".rustup")).is_dir()), None)
    host = os.environ if rustup is None else {"RUSTUP_HOME": str(rustup), **os.environ}
    for asked, inner in ((("rustc", "--print", "sysroot"), "bin"), (("go", "env", "GOROOT"), "bin")):
        if asked[0] in track.programs and (said := (said_by(*asked, env=host) or "").strip()).startswith("/"):
            folders.insert(0, Path(said) / inner)
            roots.append(Path(said))
    if "java" in track.programs:  # Debian's JDK has its settings there
        roots += Path("/etc").glob("java*")
    path = os.pathsep.join(dict.fromkeys([*map(str, folders), usual_path]))
    return BroughtFiles(without_homes(roots), {**_COMPILERS, "PATH": path})


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs a command in a separate folder for each candidate."""

    sandbox: Sandbox
    track: Track
    command: str

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the command on a candidate without network. Packages are installed only once.

        `tests` is ignored, since the command chooses tests. Raise `InfraError` if installing fails.
        """
        del tests  # the command decides which tests run
        install, test = split_command(self.command)
        files = without_package_names(files)
        installed = None if install is None else await self._installed(install, files)
        report = CommandReport.wanted(test, self.track, files)
        async with open_place() as place:
            put_files(place, {**files, **report.files})
            if installed is not None:
                _bring(installed, place)
            tools = tools_of(self.track, self.sandbox)
            env = {**tools.env, **_offline_settings(installed), **report.env}
            argv = ("/bin/sh", "-c", report.command)
            readable = (*tools.readable, *(() if installed is None else (installed,)))
            command = Command(argv, place, seconds, LIMITS, env=env, readable=readable, graded=True)
            done = await self.sandbox.run(command)
            taken = take(place.work, [report.file], max_bytes=MAX_REPORT_SIZE, max_files=1)
        if done.stop != "exited":
            return stopped_by_limit(done)
        for program in self.track.programs:
            await check_program(self.sandbox, command, done, program)
        return report.check(self.command, done, next(iter(taken.files.values()), None))

    async def bring(self, place: Place, files: Mapping[str, str]) -> BroughtFiles:
        """Put the installed packages into an agent's workspace, so that the tests can run there."""
        install, _ = split_command(self.command)
        tools = tools_of(self.track, self.sandbox)
        if install is None:
            return tools
        files = without_package_names(files)
        installed = await self._installed(install, files)
        manifests = {name: text for name, text in files.items() if _MANIFESTS.fullmatch(name)}
        await asyncio.to_thread(put_files, place, manifests)
        await asyncio.to_thread(_bring, installed, place)
        return BroughtFiles((*tools.readable, installed), {**tools.env, **_offline_settings(installed)})

    async def _installed(self, install: str, files: Mapping[str, str]) -> Path:
        manifests = {name: text for name, text in files.items() if _MANIFESTS.fullmatch(name)}
        # Entries of a lock file are sorted, even by the removed name.
        wanted = {name: sorted(text.split("\n\n")) for name, text in manifests.items()}
        key = fingerprint(install, wanted, self.sandbox.name, platform.system(), platform.machine())
        folder = cache_folder() / "toolchains" / f"track-{self.track.slug}-{key[:16]}"

        async def fill(beside: Path) -> None:
            """Install in a sandbox with a network, then copy the result into the cache."""
            async with open_place() as place:
                put_files(place, manifests)
                env = await _registry_settings() | {"COREPACK_HOME": str(inside(self.sandbox, place).home / "corepack")}
                argv = ("/bin/sh", "-c", install)
                seen = (Path(env["NODE_EXTRA_CA_CERTS"]),) if "NODE_EXTRA_CA_CERTS" in env else ()
                command = Command(argv, place, INSTALL_SECONDS, LIMITS, env=env, network=True, readable=seen)
                done = await self.sandbox.run(command)
                if not done.ok:
                    told = f"`{install}` failed; can the registry be reached? {last_output(done)}"
                    raise InfraError(told, permanent=True)
                for source, name in ((place.work, "work"), (place.home / "corepack", "corepack")):
                    if source.is_dir():  # so that we own the copy
                        await asyncio.to_thread(shutil.copytree, source, beside / name, symlinks=True)

        return await install_once(folder, fill)


def _bring(installed: Path, place: Place) -> None:
    """Link the installed folders, and copy the files, because some are read by relative paths.

    Package managers expect their own lock file, so it replaces that of the exercise.
    """
    for source in (installed / "work").iterdir():
        beside = place.work / source.name
        if beside.exists() and source.name not in _LOCK_FILES:
            continue
        if source.is_dir():
            beside.symlink_to(source)
        elif source.is_file():
            shutil.copyfile(source, beside)
    hand_over(place)


def without_package_names(files: Mapping[str, str]) -> dict[str, str]:
    """Give all exercises of a track the same package name, so that they share packages."""
    manifest = json_object(files.get("package.json", "")) or {}
    name = manifest.get("name")
    if not isinstance(name, str):
        return dict(files)
    rest = {key: value for key, value in manifest.items() if key not in _DESCRIPTIVE}
    changed = {**files, "package.json": json.dumps({"name": _NAME, **rest}, indent=2)}
    if "yarn.lock" in files:
        changed["yarn.lock"] = files["yarn.lock"].replace(f"{name}@workspace:", f"{_NAME}@workspace:")
    return changed


async def _registry_settings() -> dict[str, str]:
    """Return settings by which corepack and yarn use npm's registry. Candidates do not see them."""
    settings = {name: os.environ[name] for name in _NETWORK_VARIABLES if os.environ.get(name)} | _MANAGERS
    if npm := shutil.which("npm"):
        registry = (await output_of([npm, "config", "get", "registry"], Path("/"), seconds=60.0)).strip().rstrip("/")
        if registry.startswith(("http://", "https://")):
            settings |= {"COREPACK_NPM_REGISTRY": registry, "YARN_NPM_REGISTRY_SERVER": registry}
            settings |= {"YARN_REGISTRY": registry, "NPM_CONFIG_REGISTRY": f"{registry}/"}
    return settings


def _offline_settings(installed: Path | None) -> dict[str, str]:
    settings = {**_MANAGERS, "COREPACK_ENABLE_NETWORK": "0", "YARN_ENABLE_NETWORK": "0", "CI": "1"}
    return settings | ({} if installed is None else {"COREPACK_HOME": str(installed / "corepack")})


class OpenPackages(Protocol):
    """Puts packages into workspaces in which nothing has run yet."""

    async def bring(self, place: Place, files: Mapping[str, str]) -> BroughtFiles:
        """Put the packages into a place. Return the paths and variables that commands need.

        `files` are those of the exercise, including lists of packages.
        """


@dataclass(frozen=True, slots=True)
class AgentPackages:
    """The resource that links the packages of a track's tests into workspaces, read-only.

    Args:
        sandbox: Makes the sandbox for installing.
        track: The language of the exercises.
        command: The test command, unless it is our own runner. Its first part installs.
    """

    sandbox: Callable[[], Sandbox]
    track: Track
    command: str | None = None

    @property
    def key(self) -> str:
        return f"packages {self.track.slug}{f' by {self.command}' if self.command else ''}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[OpenPackages]:
        """Yield an object that provides packages. They are installed for the first agent."""
        if self.command is not None:
            yield CommandRunner(self.sandbox(), self.track, self.command)
        else:
            yield JestPackages(await install_jest() / _MODULES)


@dataclass(frozen=True, slots=True)
class JestPackages:
    """The versions of Jest, Babel and TypeScript that grade, and default TypeScript settings."""

    modules: Path

    async def bring(self, place: Place, files: Mapping[str, str]) -> BroughtFiles:
        """Link the packages. Add default TypeScript settings if the exercise has none."""
        if _SETTINGS not in files:
            await asyncio.to_thread(put_files, place, {_SETTINGS: (JEST_SOURCES / _SETTINGS).read_bytes()})
        link = place.work / _MODULES
        if not link.exists():
            link.symlink_to(self.modules)
        return BroughtFiles((self.modules,))


def packages_of(grading: Grading | None, sandbox: Callable[[], Sandbox]) -> AgentPackages | None:
    """Return the resource with which agents can run a case's tests; None if not needed."""
    if grading is None or grading.track not in TRACKS:
        return None
    track = TRACKS[grading.track]
    if grading.command:
        needed = track.programs or split_command(grading.command[0])[0] is not None
        return AgentPackages(sandbox, track, grading.command[0]) if needed else None
    return AgentPackages(sandbox, track) if track.runner == "jest" else None
