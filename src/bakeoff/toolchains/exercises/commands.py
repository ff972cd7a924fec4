"""A track's own test command, run in the pristine copy: for those who want exactly what the track does.

What it installs is installed once, with a network and without any candidate; the tests then have no network. A command
says little: its exit code, and a report where its runner is one we know. Both come from where the candidate is, so the
command runs twice, the second time with a test that must fail: a candidate that ends it with 0 regardless is found out.
One that knows the tests can tell these runs apart: where we have a guarded runner of our own, that runs them as well.
"""

import asyncio
import json
import os
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bakeoff._kernel.cache import cache_folder
from bakeoff._kernel.model import fingerprint
from bakeoff.errors import InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Place, Sandbox
from bakeoff.sandbox import hand_over, inside, open_place, put_files, take
from bakeoff.toolchains.canary import Canary, plain
from bakeoff.toolchains.exercises.jest import with_canary
from bakeoff.toolchains.exercises.profiles import TrackProfile
from bakeoff.toolchains.exercises.runner import Runner
from bakeoff.toolchains.installing import install_once, output_of
from bakeoff.toolchains.junit import LARGEST_REPORT, ended_by_limit, last_words, read_junit
from bakeoff.toolchains.outcome import TestOutcome, TestRun, TestState

LIMITS = Limits(memory_mb=4096, processes=256, disk_mb=2048, output_kb=4096)
INSTALL_SECONDS = 900.0
_INSTALLS = re.compile(
    r"\s*((?:corepack\s+)?(?:yarn|pnpm|npm)(?:\s+(?:install|ci|i))?(?:\s+--?[\w=-]+)*|(?:uv\s+sync|(?:uv\s+)?pip3?\s+install)[^&;|]*)\s*&&\s*(.+)",
    re.DOTALL,
)
_MANIFESTS = re.compile(
    r"(?:package(?:-lock)?\.json|yarn\.lock|pnpm-\w+\.yaml|\.yarnrc(?:\.yml)?|\.npmrc|requirements\S*\.txt)"
)
_WAY_OUT = ("NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_MANAGERS = {
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "COREPACK_ENABLE_AUTO_PIN": "0",
    "YARN_ENABLE_GLOBAL_CACHE": "0",
    "YARN_ENABLE_TELEMETRY": "0",
    "YARN_NODE_LINKER": "node-modules",  # a folder can be linked into each trial; Plug'n'Play has paths of its own
}
_PYTEST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
_TOLD_ONLY = ("name", "description", "version", "author", "contributors", "keywords", "repository")
_TESTS_BY_SCRIPT = re.compile(r"(?:corepack\s+)?(?:yarn|pnpm)(?:\s+run)?\s+test")
_NAME = "exercise"


def split_command(command: str) -> tuple[str | None, str]:
    """The part that installs, which needs a network and no candidate, and the part that tests."""
    found = _INSTALLS.fullmatch(command)
    return (found[1].strip(), found[2].strip()) if found else (None, command.strip())


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs the command in a place of its own for each candidate."""

    sandbox: Sandbox
    profile: TrackProfile
    command: str
    say: Callable[[str], None]
    guard: Runner | None = None  # of the same language

    async def run_files(
        self, files: Mapping[str, str], *, tests: Collection[str], trusted: Collection[str], seconds: float
    ) -> list[TestRun]:
        install, test = split_command(self.command)
        files = unnamed(files)
        prepared = None if install is None else await self._prepared(install, files)
        found = await self._run(test, files, prepared, seconds)
        canary = _with_failing_test(self.profile, sorted(tests)[0], files)
        if not found.ok or canary is None:
            return [found]
        again = await self._run(test, canary, prepared, seconds)
        if again.stop != "finished":
            return [again]
        if not again.ok:
            return [await self._borne_out(found, files, tests, trusted, seconds)]
        why = "the command does not fail with a test that must fail"
        return [found.model_copy(update={"tampered": why, "canary_seen": False})]

    async def _borne_out(
        self, found: TestRun, files: Mapping[str, str], tests: Collection[str], trusted: Collection[str], seconds: float
    ) -> TestRun:
        """With what the guarded runner has to say: that it was tampered with, or that it does not bear this out."""
        if self.guard is None:
            return found
        try:
            runs = await self.guard.run_files(files, tests=tests, trusted=trusted, seconds=seconds)
        except InfraError as error:
            if not error.permanent:
                raise
            return found.model_copy(update={"unconfirmed": str(error)})
        if why := next((run.tampered for run in runs if run.tampered), None):
            return found.model_copy(update={"tampered": why, "canary_seen": False})
        return found.model_copy(update={"unconfirmed": _dissent(runs)})

    async def _run(self, test: str, files: Mapping[str, str], prepared: Path | None, seconds: float) -> TestRun:
        report = _Report.wanted(test, self.profile, files)
        async with open_place() as place:
            put_files(place, {name: text.encode() for name, text in files.items()})
            if prepared is not None:
                _bring(prepared, place)
            env = {**_offline_settings(prepared), **report.env}
            argv = ("/bin/sh", "-c", report.command)
            readable = () if prepared is None else (prepared,)
            done = await self.sandbox.run(Command(argv, place, seconds, LIMITS, env=env, readable=readable))
            taken = take(place.work, [report.file], max_bytes=LARGEST_REPORT, max_files=1)
        if done.stop != "exited":
            return ended_by_limit(done)
        return report.judged(self.command, done, next(iter(taken.files.values()), None))

    async def _prepared(self, install: str, files: Mapping[str, str]) -> Path:
        manifests = {name: text for name, text in files.items() if _MANIFESTS.fullmatch(name)}
        # A lock file's entries are sorted, also by the name that was taken away.
        wanted = {name: sorted(text.split("\n\n")) for name, text in manifests.items()}
        key = fingerprint(install, wanted, self.sandbox.name, platform.system(), platform.machine())
        folder = cache_folder() / "toolchains" / f"track-{self.profile.language}-{key[:16]}"

        async def fill(beside: Path) -> None:
            await self._install(install, manifests, beside)

        return await install_once(
            folder, fill, lambda: self.say(f"Running `{install}` into {folder} (once for this track) …")
        )

    async def _install(self, install: str, manifests: Mapping[str, str], folder: Path) -> None:
        """In a sandbox with a network, then kept."""
        async with open_place() as place:
            put_files(place, {name: text.encode() for name, text in manifests.items()})
            env = await _registry_settings() | {"COREPACK_HOME": str(inside(self.sandbox, place).home / "corepack")}
            argv = ("/bin/sh", "-c", install)
            seen = tuple(Path(env[name]) for name in ("NODE_EXTRA_CA_CERTS",) if name in env)
            command = Command(argv, place, INSTALL_SECONDS, LIMITS, env=env, network=True, readable=seen)
            done = await self.sandbox.run(command)
            if not done.ok:
                raise InfraError(f"`{install}` failed, is the registry in reach? {last_words(done)}", permanent=True)
            await asyncio.to_thread(_keep, place, folder)


def _keep(place: Place, folder: Path) -> None:
    for source, name in ((place.work, "work"), (place.home / "corepack", "corepack")):
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True)  # copies are ours, not the place's user's


def _bring(prepared: Path, place: Place) -> None:
    """Folders are linked, which costs nothing; files are copied, since some of them are read by where they stand."""
    for source in (prepared / "work").iterdir():
        beside = place.work / source.name
        if beside.exists():
            continue
        if source.is_dir():
            beside.symlink_to(source)
        elif source.is_file():
            shutil.copyfile(source, beside)
    hand_over(place)


def unnamed(files: Mapping[str, str]) -> dict[str, str]:
    """The exercises of a track differ in what their packages are called. Without that they share an installation."""
    manifest = _parsed(files.get("package.json", ""))
    name = manifest.get("name")
    if not isinstance(name, str):
        return dict(files)
    told = {key: value for key, value in manifest.items() if key not in _TOLD_ONLY}
    changed = {**files, "package.json": json.dumps({"name": _NAME, **told}, indent=2)}
    if "yarn.lock" in files:
        changed["yarn.lock"] = files["yarn.lock"].replace(f"{name}@workspace:", f"{_NAME}@workspace:")
    return changed


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


async def _registry_settings() -> dict[str, str]:
    """Corepack and yarn have registries of their own, unless told to use npm's. No candidate is there to see this."""
    settings = {name: os.environ[name] for name in _WAY_OUT if os.environ.get(name)}
    settings |= _MANAGERS
    npm = shutil.which("npm")
    if npm is None:
        return settings
    registry = (await output_of([npm, "config", "get", "registry"], Path("/"), seconds=60.0)).strip().rstrip("/")
    if not registry.startswith(("http://", "https://")):
        return settings
    settings |= {"COREPACK_NPM_REGISTRY": registry, "YARN_NPM_REGISTRY_SERVER": registry}
    return settings | {"YARN_REGISTRY": registry, "NPM_CONFIG_REGISTRY": f"{registry}/"}


def _offline_settings(prepared: Path | None) -> dict[str, str]:
    settings = {**_MANAGERS, "COREPACK_ENABLE_NETWORK": "0", "YARN_ENABLE_NETWORK": "0", "CI": "1"}
    return settings | ({} if prepared is None else {"COREPACK_HOME": str(prepared / "corepack")})


# ---------------------------------------------------------------------------------------------------- the verdict


def _dissent(runs: Collection[TestRun]) -> str | None:
    """The first thing that went wrong in these; None where nothing did."""
    for run in runs:
        failed = [f"{test.name}: {test.message}" for test in run.tests if test.state == "failed"]
        if not run.ok:
            return next(iter([*([run.error] if run.error else []), *failed]), f"it was ended: {run.stop}")
    return None


def _with_failing_test(profile: TrackProfile, name: str, files: Mapping[str, str]) -> dict[str, str] | None:
    """The files with a test that must fail; None for a language of which we know too little."""
    canary = Canary()
    if profile.runner == "jest":
        return {**files, name: with_canary(canary, files[name])}
    if profile.runner == "pytest":
        test = f"\n\ndef test_holds_{canary.word}():\n    assert {canary.word!r} == {canary.proof!r}\n"
        return {**files, name: files[name] + test}
    return None


@dataclass(frozen=True, slots=True)
class _Report:
    """A report of each test, where the command can be made to write one; without it the command is one test itself."""

    command: str
    file: str
    env: Mapping[str, str]

    @classmethod
    def wanted(cls, command: str, profile: TrackProfile, files: Mapping[str, str]) -> "_Report":
        name = f"report-{secrets.token_hex(8)}"
        if profile.runner == "pytest":
            return cls(command, f"{name}.xml", {**_PYTEST, "PYTEST_ADDOPTS": f"--junitxml={name}.xml"})
        if profile.runner == "jest" and _TESTS_BY_SCRIPT.fullmatch(command) and _script_is_jest(files):
            return cls(f"{command} --ci --json --outputFile={name}.json", f"{name}.json", {})
        return cls(command, f"{name}.none", {})

    def judged(self, command: str, done: Completed, written: bytes | None) -> TestRun:
        tests = self._tests(written)
        words = plain(last_words(done))
        if not tests:
            state: TestState = "passed" if done.ok else "failed"
            tests = [TestOutcome(name=command, state=state, message="" if done.ok else words, seconds=done.seconds)]
        failed = any(test.state == "failed" for test in tests)
        error = None if done.ok or failed else f"`{command}` ended with exit code {done.exit_code}: {words}"
        tampered = "a test failed, but the command ended with 0" if done.ok and failed else None
        return TestRun(tests=tuple(tests), error=error, seconds=done.seconds, canary_seen=True, tampered=tampered)

    def _tests(self, written: bytes | None) -> list[TestOutcome]:
        if written is None:
            return []
        text = written.decode(errors="replace")
        try:
            return read_junit(text) if self.file.endswith(".xml") else _read_jest(text)
        except ValueError:  # no report, or one that is not the runner's: the exit code is left
            return []


def _script_is_jest(files: Mapping[str, str]) -> bool:
    scripts = _parsed(files.get("package.json", "")).get("scripts")
    return isinstance(scripts, dict) and re.match(r"jest\b", str(scripts.get("test"))) is not None


class _JestTest(BaseModel):
    ancestorTitles: list[str]
    title: str
    status: str
    failureMessages: list[str] = []


class _JestFile(BaseModel):
    assertionResults: list[_JestTest]


class _JestReport(BaseModel):
    testResults: list[_JestFile]


def _read_jest(text: str) -> list[TestOutcome]:
    """Jest's own JSON; `ValueError` where it is none."""
    tests = [test for file in _JestReport.model_validate_json(text).testResults for test in file.assertionResults]
    states: dict[str, TestState] = {"passed": "passed", "failed": "failed"}
    return [
        TestOutcome(
            name=" > ".join([*test.ancestorTitles, test.title]),
            state=states.get(test.status, "skipped"),
            message=plain("\n".join(text.split("\n    at ")[0] for text in test.failureMessages))[:4000],
        )
        for test in tests
    ]
