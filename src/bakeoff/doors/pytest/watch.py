"""Implement `pytest --eval-watch`: after a change, run the tests that it affects or that failed.

`watch` starts a pytest process for each cycle, so that all modules are imported again. Both share
a `WatchState` through a file. `WatchCycle` has the hooks of that process: it leaves out the tests
whose results are kept, and notes which files the others used.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.temporary import temporary_folder
from bakeoff._kernel.text import count_of
from bakeoff.doors.pytest.gather import FINAL, gathering
from bakeoff.doors.pytest.options import WATCH_CYCLE, results_folder
from bakeoff.doors.pytest.rows import read_rows
from bakeoff.doors.pytest.run_writer import ignore_in_git
from bakeoff.engine.reuse import CHANGED_FILE, KnownPart, delete_runs, why_stale
from bakeoff.engine.used_files import ROWS, ReadFiles, code_digest, imported_files, own_modules, used_by
from bakeoff.engine.watch import ANYTHING, Changes, WatchLoop, source_files, stale_users
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.run_folder import RunFolder

PLUGIN = "bakeoff-watch"
_PAGE = "watch.html"  # in the folder of results, if none is named
_WORKER_OUTPUT = "bakeoff_watch"
_INTERRUPTED_TWICE = 130
SUITE_FUNCTIONS = ("eval_suite", "describe_eval")


class KeptTest(FrozenModel):
    """The last result of a test."""

    key: str  # a hash of its row, and of the code of its file
    failed: bool = False
    outcomes: tuple[EvalOutcome, ...] = ()


class WatchState(FrozenModel):
    """The results of all cycles so far, and the tests to run in the next one."""

    number: int = 0  # of the cycle
    stale: frozenset[str] | None = frozenset()  # test files that use something that has changed; None: all
    tests: dict[str, KeptTest] = {}
    uses: dict[str, frozenset[str]] = {}  # test file -> files that its tests use
    watched: frozenset[str] = frozenset()  # files that count besides the source files of the project
    complete: bool = True  # everything could be collected in the last cycle
    run: str | None = None  # the folder in which it is kept

    def why_stale(self, item: pytest.Item, key: str) -> str | None:
        """Return why a test must be run again; None if its last result is kept."""
        known, file = self.tests.get(item.nodeid), str(item.path)
        touched = CHANGED_FILE if self.stale is None or file in self.stale else None
        return why_stale(key, None if known is None else KnownPart(known.key, not known.failed), touched)

    def after(
        self,
        tests: dict[str, KeptTest],
        imports: Mapping[str, Iterable[str]],
        reads: Mapping[str, Iterable[str]],
        **more: Any,
    ) -> Self:
        """Return the state after a cycle, which may have run only some of the tests.

        Args:
            tests: The last result of each test that was collected.
            imports: The files that each test file imports, directly or not.
            reads: The modules that read each data file, `ROWS` or `ANYTHING`.
            more: Other fields.
        """
        uses, watched = used_by(imports, reads)
        for test, files in uses.items():
            files |= self.uses.get(test, frozenset())
        given = {"tests": tests, "uses": uses, "watched": self.watched | watched}
        return type(self)(**{"number": self.number, **given, **more})


def watch(config: pytest.Config) -> int:
    """Run cycles until Ctrl-C; return the exit code of the last one."""
    from bakeoff.report.render.html.render import write_cycle  # a cycle without evals does not need it

    if config.option.eval_until_decided:
        raise pytest.UsageError("--eval-watch keeps results, and --eval-until-decided needs all anew: use one of them")
    page = config.invocation_params.dir / (config.option.eval_html or results_folder(config) / _PAGE)
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)  # cycles read from the terminal, for --pdb
    write_cycle(page, None)  # an earlier watch may have been killed
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with temporary_folder("bakeoff-watch-") as folder:
            return _PytestWatch(config, folder / "cycle.json", page).loop.run()
    finally:
        write_cycle(page, None)


class _PytestWatch:
    """The cycles of one watch."""

    def __init__(self, config: pytest.Config, file: Path, page: Path) -> None:
        self._config, self._file = config, file
        self._command = [*_command(config), f"{WATCH_CYCLE}={file}", *config.invocation_params.args]
        self._others: set[str] = set()  # test files that no test of ours uses
        self._state = WatchState()
        self._owed: dict[str, str | None] = {}  # changes since the last cycle that was complete
        self.loop = WatchLoop(self._sources, self._cycle, _say, lambda: [page])

    def _sources(self) -> set[str]:
        return self._project_files() - self._others | self._state.watched

    def _project_files(self) -> set[str]:
        return set(source_files(self._config.rootpath, without={str(results_folder(self._config) / "runs")}))

    def _cycle(self, changed: Changes) -> int:
        """Run pytest on the tests that the changes affect, and return its exit code."""
        self._owed = {**changed, **self._owed}
        stale, number = stale_users(self._owed, self._state.uses), self._state.number + 1
        given = {"stale": stale if stale is None else frozenset(stale), "number": number, "complete": False}
        before = self._state = self._state.model_copy(update=given)
        self._file.write_bytes(before.model_dump_json(exclude_defaults=True).encode())
        code, interrupted = _run(self._command, self._config.invocation_params.dir)
        with suppress(OSError, ValidationError):  # it ended before it could report
            self._state = WatchState.model_validate_json(self._file.read_bytes())
        if self._state.complete:
            self._owed.clear()
            patterns: list[str] = self._config.getini("python_files")
            tests = {each for each in self._project_files() if any(fnmatch(Path(each).name, one) for one in patterns)}
            self._others = tests - self._state.watched
        if before.run not in (None, self._state.run):
            delete_runs([RunFolder(Path(before.run))])
        self.loop.ended = interrupted or (code == pytest.ExitCode.USAGE_ERROR and number == 1)
        return code


def _command(config: pytest.Config) -> list[str]:
    """Return the command that started this pytest, without its arguments."""
    given, typed = list(config.invocation_params.args), sys.orig_argv[1:]
    if given and typed[-len(given) :] == given:
        return [sys.executable, *typed[: -len(given)]]
    return [sys.executable, "-m", "pytest"]


def _run(command: list[str], folder: Path) -> tuple[int, bool]:
    """Run a pytest process; return its exit code, and whether Ctrl-C ended it.

    An interrupt is only noted here, so that the process can tear down its fixtures.
    """
    interrupts: list[int] = []
    process = subprocess.Popen(command, cwd=folder)

    def note(number: int, _: object) -> None:
        interrupts.append(number)
        if not os.isatty(0):  # a terminal tells both
            process.send_signal(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        return process.wait(), bool(interrupts)
    finally:
        process.terminate()  # does nothing if it has ended
        if not interrupts:
            signal.signal(signal.SIGINT, before)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # which is flushed after every line


def begin_cycle(config: pytest.Config, file: Path) -> None:
    """Register the hooks of a cycle, for `pytest_configure`."""
    if not hasattr(config, "workerinput"):
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, _interrupt)
        if config.option.eval_html is None:
            folder = results_folder(config)
            config.option.eval_html = folder / _PAGE
            folder.mkdir(parents=True, exist_ok=True)
            ignore_in_git(folder)
    config.pluginmanager.register(WatchCycle(config, file), PLUGIN)


def _interrupt(*_: object) -> None:
    """Let the first Ctrl-C stop the tests, and the second end the process at once, without a traceback."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED_TWICE))
    raise KeyboardInterrupt


class WatchCycle:
    """The hooks of one cycle, in each of its processes."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._config, self._file = config, file
        self._state = WatchState.model_validate_json(file.read_bytes())
        self.number = self._state.number  # by which an open page notices a new cycle
        roots = [config.rootpath, config.invocation_params.dir]
        self._reads = ReadFiles(roots, results_folder(config) / "runs", read_rows.__code__)
        self._failed: dict[str, bool] = {}  # the tests that were run
        self._collected_all = True
        self._keys: dict[str, str] = {}
        self._kept: list[str] = []
        self._uses: dict[str, dict[str, set[str]]] = {"imports": {}, "reads": {}}
        self._files: set[Path] = set()  # of all tests
        self.run: Path | None = None  # where this cycle is kept

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests whose results are kept."""
        self._files = {item.path for item in items}
        rows = [path for path, readers in self._reads.found.items() if ROWS in readers]
        code = {path: _code_of(path) for path in self._files}
        times = {path: _times([path, *rows]) for path in self._files}
        self._keys = {item.nodeid: _key(item, code[item.path], times[item.path]) for item in items}
        stale = {item.nodeid for item in items if self._state.why_stale(item, self._keys[item.nodeid])}
        if kept := [item for item in items if item.nodeid not in stale]:
            self._kept = [item.nodeid for item in kept]
            items[:] = [item for item in items if item.nodeid in stale]
            self._config.hook.pytest_deselected(items=kept)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._collected_all &= not report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome in FINAL:
            self._failed[report.nodeid] = self._failed.get(report.nodeid, False) or report.failed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what an xdist worker reports about its tests; all workers collect the same tests."""
        if (reported := getattr(node, "workeroutput", {}).get(_WORKER_OUTPUT)) is not None:
            self._keys, self._kept, uses = json.loads(reported)
            for kind, found in uses.items():
                for path, files in found.items():
                    self._uses[kind].setdefault(path, set()).update(files)

    def kept_outcomes(self) -> Iterator[EvalOutcome]:
        """Yield the results that are kept from earlier cycles."""
        return (outcome for nodeid in self._kept for outcome in self._state.tests[nodeid].outcomes)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Note the files that each test used."""
        self._reads.stop()
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._kept:
            session.exitstatus = pytest.ExitCode.OK
        config = session.config
        for path, readers in self._reads.found.items():
            self._uses["reads"].setdefault(path, set()).update(readers)
        if config.inipath is not None:
            self._uses["reads"][str(config.inipath)] = {ANYTHING}
        if self._files:
            self._uses["imports"] = _imported_by_tests(self._files, config, own_modules(self._reads.is_ours))
        if hasattr(config, "workeroutput"):
            config.workeroutput[_WORKER_OUTPUT] = to_json((self._keys, self._kept, self._uses)).decode()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Write the state after the cycle, once the run is written."""
        if hasattr(config, "workerinput"):
            return
        before, outcomes = self._state, dict[str, list[EvalOutcome]]()
        for outcome in gathering(config).outcomes:
            outcomes.setdefault(outcome.nodeid, []).append(outcome)
        tests = {nodeid: before.tests[nodeid] for nodeid in self._kept}
        for nodeid, failed in self._failed.items():
            if nodeid in self._keys:
                found = tuple(outcomes.get(nodeid, ()))
                tests[nodeid] = KeptTest(key=self._keys[nodeid], failed=failed, outcomes=found)
        run, complete = before.run if self.run is None else str(self.run), self._collected_all and bool(self._keys)
        after = before.after(tests, **self._uses, run=run, complete=complete)
        if not complete:  # a test that could not be collected may still exist
            after = after.model_copy(update={"tests": before.tests, "uses": before.uses})
        write_atomically(self._file, after.model_dump_json(exclude_defaults=True).encode())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._kept:
            words = count_of(len(self._kept), "result is", "results are")
            terminalreporter.write_line(f"watch: {words} kept from earlier cycles")


def _imported_by_tests(tests: Iterable[Path], config: pytest.Config, loaded: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the files that each test file uses: imports, plugins, conftests, and their imports.

    `loaded` has the files of relevant modules, by name.
    """
    plugins = {str(each.__file__) for each in config.pluginmanager.get_plugins() if isinstance(each, ModuleType)}
    plugins = {file for file in plugins & set(loaded.values()) if Path(file).name != "conftest.py"}
    found: dict[str, set[str]] = {}
    for test in tests:
        folders = (folder for folder in test.parents if folder.is_relative_to(config.rootpath))
        shared = plugins | {str(file) for folder in folders if (file := folder / "conftest.py").exists()}
        imported = (imported_files(file, loaded) for file in (str(test), *shared))
        found[str(test)] = shared.union(*imported) - {str(test)}
    return found


def _code_of(path: Path) -> str:
    """Return a hash of the code of a test file."""
    try:
        return code_digest(path.read_text(encoding="utf-8"), SUITE_FUNCTIONS)
    except (OSError, SyntaxError, ValueError):  # not a file of Python: a test of another plugin
        return _times([path])


def _key(item: Any, code: str, times: str) -> str:
    """Return a hash of the row of a test and of the code of its file.

    `times` replaces rows that hold objects: it is a hash of the times of the files they are from.
    """
    row = getattr(item, "row", None)
    if row is None:
        return code
    try:
        values = to_json(row.values).decode()
    except ValueError:  # the code of objects may be anywhere
        values = times
    return fingerprint(code, values, repr(row.marks), row.problem)


def _times(paths: Iterable[str | Path]) -> str:
    """Return a hash of the times at which files changed. Reading them would count as a use."""
    return fingerprint({str(path): Path(path).stat().st_mtime_ns for path in paths if Path(path).exists()})
