"""`pytest --eval-watch`: run what has changed and what failed again after every change of a file.

`watch` starts a pytest for each cycle, because in a new process everything is imported anew. `WatchCycle` has the hooks
of that pytest: it leaves out the tests whose results are kept, and reports which files the others used.
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
from pydantic_core import PydanticSerializationError, to_json

import bakeoff
from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.temporary import temporary_folder
from bakeoff._kernel.text import count_of
from bakeoff.doors.pytest.gather import FINAL, gathering
from bakeoff.doors.pytest.groups import KEPT_GROUPS, Group
from bakeoff.doors.pytest.lost import subjects_among
from bakeoff.doors.pytest.options import WATCH_CYCLE, results_folder
from bakeoff.doors.pytest.run_writer import ignore_in_git
from bakeoff.doors.pytest.used_files import ANYTHING, ROWS, Reads, code_digest, imported_files, loaded_files
from bakeoff.engine.reuse import delete_runs
from bakeoff.engine.watch import GONE, Changes, WatchLoop, source_files
from bakeoff.plan import SubjectSpec
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.run_folder import RunFolder

PLUGIN = "bakeoff-watch"
_PAGE = "watch.html"  # in the folder of results, if none is named
_WORKER_OUTPUT = "bakeoff_watch"
_FOR_ALL = ("conftest.py", "__init__.py")  # new files with these names change others
_NOT_WATCHED = tuple(str(Path(file).parent) + os.sep for file in (os.__file__, bakeoff.__file__) if file)


class KeptTest(FrozenModel):
    """The last result of a test."""

    fingerprint: str  # of its row, and of the code of its file
    failed: bool = False
    outcomes: tuple[EvalOutcome, ...] = ()


class Cycle(FrozenModel):
    """The input of a cycle."""

    number: int
    all: bool = True
    stale: tuple[str, ...] = ()  # test files that use something that has changed
    tests: dict[str, KeptTest] = {}

    def keeps(self, nodeid: str, file: str, fingerprint: str) -> bool:
        """Tell whether a test need not be run again."""
        known = self.tests.get(nodeid)
        if self.all or known is None:
            return False
        return not known.failed and known.fingerprint == fingerprint and file not in self.stale


class CycleResult(FrozenModel):
    """The report of a cycle at its end."""

    complete: bool = True  # everything could be collected
    run: str | None = None  # the folder in which it is kept
    tests: dict[str, KeptTest] = {}
    imports: dict[str, frozenset[str]] = {}  # test file -> files that it imports, directly or not
    reads: dict[str, frozenset[str]] = {}  # data file -> modules that read it

    def after(self, earlier: Self) -> Self:
        """Return this with the files that earlier cycles have used: a cycle runs only some of the tests."""
        imports = {test: files | earlier.imports.get(test, frozenset()) for test, files in self.imports.items()}
        reads = {path: by | self.reads.get(path, frozenset()) for path, by in earlier.reads.items()}
        return self.model_copy(update={"imports": imports, "reads": {**self.reads, **reads}})

    @property
    def files(self) -> set[str]:
        """Return all files whose changes count, besides source files of the project."""
        return {*self.reads, *self.imports, *frozenset[str]().union(*self.imports.values())} - {ANYTHING}


def stale_tests(changed: Changes, known: CycleResult) -> set[str] | None:
    """Return the test files that use a changed file; None if every test may.

    A test file that has changed itself is not among them, unless others import it: its tests are compared one by one.
    """
    stale: set[str] = set()
    for path, before in changed.items():
        readers = known.reads.get(path, frozenset({path}) if path.endswith(".py") else frozenset())
        for reader in readers - {ROWS}:
            users = {test for test, files in known.imports.items() if reader in files}
            is_new = reader == path and before in (None, GONE)
            if reader == ANYTHING or (not users and not is_new and reader not in known.imports):
                return None
            if is_new and Path(path).name in _FOR_ALL:
                return None
            stale |= users
            stale |= {reader} if reader != path and reader in known.imports else set()  # a test file and what it reads
            stale |= {test for test, files in known.imports.items() if ANYTHING in files and test != path}
    return stale


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
        self._without = {str(results_folder(config) / "runs")}
        self._used: set[str] = set()  # files that count besides the source files of the project
        self._others: set[str] = set()  # test files that no test of ours uses
        self._result: CycleResult | None = None  # of all complete cycles
        self._run: RunFolder | None = None  # in which the last cycle is kept
        self._owed: dict[str, str | None] = {}  # changes since the last cycle that was complete
        self._number = 0
        self.loop = WatchLoop(self._sources, self._cycle, _say, lambda: [page])

    def _sources(self) -> set[str]:
        return set(source_files(self._config.rootpath, without=self._without)) - self._others | self._used

    def _cycle(self, changed: Changes) -> int:
        """Run a pytest for what changed, and return its exit code."""
        self._number += 1
        self._owed = {**changed, **self._owed}
        cycle, known = Cycle(number=self._number), self._result
        if known is not None:
            stale = stale_tests(self._owed, known)
            given = {"all": stale is None, "stale": tuple(sorted(stale or ())), "tests": known.tests}
            cycle = cycle.model_copy(update=given)
        self._file.write_text(cycle.model_dump_json(exclude_defaults=True), encoding="utf-8")
        result_file(self._file).unlink(missing_ok=True)
        code, interrupted = _run(self._command, self._config.invocation_params.dir)
        with suppress(OSError, ValidationError):  # it ended before it could report
            self._take(CycleResult.model_validate_json(result_file(self._file).read_bytes()))
        self.loop.ended = interrupted or (code == pytest.ExitCode.USAGE_ERROR and self._number == 1)
        return code

    def _take(self, result: CycleResult) -> None:
        self._used |= result.files
        if result.complete:
            self._owed.clear()
            self._result = result.after(self._result or CycleResult())
            patterns: list[str] = self._config.getini("python_files")
            tests = (
                file
                for file in source_files(self._config.rootpath, without=self._without)
                if any(fnmatch(Path(file).name, pattern) for pattern in patterns)
            )
            self._others = set(tests) - self._used
        if result.run is not None:
            delete_runs([self._run] if self._run else [])
            self._run = RunFolder(Path(result.run))


def _command(config: pytest.Config) -> list[str]:
    """Return the command that started this pytest, without its arguments."""
    given, typed = list(config.invocation_params.args), sys.orig_argv[1:]
    if given and typed[-len(given) :] == given:
        return [sys.executable, *typed[: -len(given)]]
    return [sys.executable, "-m", "pytest"]


def _run(command: list[str], folder: Path) -> tuple[int, bool]:
    """Run a pytest; return its exit code, and whether Ctrl-C ended it. It then still tears down its fixtures."""
    interrupted = False
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            while True:
                try:
                    return process.wait(), interrupted
                except KeyboardInterrupt:
                    if not interrupted and not os.isatty(0):  # a terminal tells both
                        process.send_signal(signal.SIGINT)
                    interrupted = True
        except BaseException:
            process.terminate()
            raise


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # which is flushed after every line


def result_file(cycle_file: Path) -> Path:
    """Return the file in which a cycle reports its result."""
    return cycle_file.with_suffix(".result")


def begin_cycle(config: pytest.Config, cycle_file: Path) -> None:
    """Register the hooks of a cycle, for `pytest_configure`."""
    if config.option.eval_html is None and not hasattr(config, "workerinput"):
        folder = results_folder(config)
        config.option.eval_html = folder / _PAGE
        folder.mkdir(parents=True, exist_ok=True)
        ignore_in_git(folder)
    config.pluginmanager.register(WatchCycle(config, cycle_file), PLUGIN)


class WatchCycle:
    """One cycle, in each of its processes."""

    def __init__(self, config: pytest.Config, cycle_file: Path) -> None:
        self._config = config
        self._result_file = result_file(cycle_file)
        self._cycle = Cycle.model_validate_json(cycle_file.read_bytes())
        self._reads = Reads([config.rootpath, config.invocation_params.dir], results_folder(config) / "runs")
        self._reads.start()
        self._failed: dict[str, bool] = {}  # the tests that were run
        self._collected_all = True
        self._known: dict[str, Any] = {"fingerprints": {}, "kept": [], "imports": {}, "reads": {}, "subjects": {}}
        self._tests: list[pytest.Item] = []
        self.run: Path | None = None  # where this cycle is kept

    @property
    def number(self) -> int:
        """Return the number of the cycle, from 1 on, by which an open page notices a new one."""
        return self._cycle.number

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests whose results are kept."""
        code = {path: _code_of(path) for path in {item.path for item in items}}
        rows = _times(path for path, by in self._reads.found.items() if ROWS in by)
        selected: list[pytest.Item] = []
        kept: list[pytest.Item] = []
        for item in items:
            mark = _fingerprint(item, code[item.path], rows)
            self._known["fingerprints"][item.nodeid] = mark
            (kept if self._cycle.keeps(item.nodeid, str(item.path), mark) else selected).append(item)
        groups = [group for item in kept if isinstance(group := getattr(item, "group", None), Group)]
        self._config.stash[KEPT_GROUPS] = list(dict.fromkeys(groups))
        self._known["kept"] = [item.nodeid for item in kept]
        subjects = subjects_among([*selected, *kept])
        self._known["subjects"] = {spec.name: spec.model_dump(mode="json") for spec in subjects.values()}
        self._tests = [*items]
        if kept:
            items[:] = selected
            self._config.hook.pytest_deselected(items=kept)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._collected_all &= not report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome in FINAL:
            self._failed[report.nodeid] = self._failed.get(report.nodeid, False) or report.failed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of xdist knows; all workers collect the same tests."""
        reported = getattr(node, "workeroutput", {}).get(_WORKER_OUTPUT)
        if reported is None:
            return
        for name, found in json.loads(reported).items():
            if name in ("imports", "reads"):
                self._add_users(name, found)
            else:
                self._known[name] = found

    def _add_users(self, name: str, found: Mapping[str, Iterable[str]]) -> None:
        known = self._known[name]
        for path, users in found.items():
            known[path] = sorted({*known.get(path, ()), *users})

    def kept_outcomes(self) -> Iterator[EvalOutcome]:
        """Yield the results that are kept from earlier cycles, each with the subject of this one."""
        subjects = {name: SubjectSpec.model_validate(spec) for name, spec in self._known["subjects"].items()}
        for nodeid in self._known["kept"]:
            for outcome in self._cycle.tests[nodeid].outcomes:
                name = outcome.records[0].subject if outcome.records else ""
                yield outcome.model_copy(update={"subject": subjects.get(name, outcome.subject)})

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Find out what was used."""
        self._reads.stop()
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._known["kept"]:
            session.exitstatus = pytest.ExitCode.OK
        self._add_users("reads", self._reads.found)
        if session.config.inipath is not None:
            self._known["reads"][str(session.config.inipath)] = [ANYTHING]
        loaded = {name: file for name, file in loaded_files().items() if self._is_source(file)}
        plugins = (each for each in self._config.pluginmanager.get_plugins() if isinstance(each, ModuleType))
        everywhere = {str(getattr(plugin, "__file__", None)) for plugin in plugins} & set(loaded.values())
        everywhere = {file for file in everywhere if Path(file).name != "conftest.py"}
        for file in dict.fromkeys(item.path for item in self._tests):
            self._known["imports"][str(file)] = sorted(_used_files(file, loaded, everywhere, session.config.rootpath))
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_WORKER_OUTPUT] = json.dumps(self._known)

    def _is_source(self, file: str) -> bool:
        """Tell whether a module is of the project, or developed elsewhere: not installed."""
        library = any(part in ("site-packages", "dist-packages", "lib-dynload") for part in Path(file).parts)
        return self._reads.is_ours(file) or not (library or file.startswith(_NOT_WATCHED))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Report the results of the cycle, once the run is written."""
        if hasattr(config, "workerinput"):
            return
        outcomes: dict[str, list[EvalOutcome]] = {}
        for outcome in gathering(config).outcomes:
            outcomes.setdefault(outcome.nodeid, []).append(outcome)
        marks = self._known["fingerprints"]
        tests = {nodeid: self._cycle.tests[nodeid] for nodeid in self._known["kept"]}
        for nodeid, failed in self._failed.items():
            if nodeid in marks:
                found = tuple(outcomes.get(nodeid, ()))
                tests[nodeid] = KeptTest(fingerprint=marks[nodeid], failed=failed, outcomes=found)
        result = CycleResult(
            complete=self._collected_all and bool(marks),
            run=None if self.run is None else str(self.run),
            tests=tests,
            imports=self._known["imports"],
            reads=self._known["reads"],
        )
        write_atomically(self._result_file, result.model_dump_json(exclude_defaults=True).encode())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if kept := len(self._known["kept"]):
            words = count_of(kept, "result is", "results are")
            terminalreporter.write_line(f"watch: {words} kept from earlier cycles")


def _code_of(path: Path) -> str:
    """Return a hash of the code of a test file."""
    try:
        return code_digest(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):  # not a file of Python: a test of another plugin
        return _times([path])


def _fingerprint(item: Any, code: str, rows: str) -> str:
    """Return a hash of the row of a test and of the code of its file.

    `rows` is a hash of the times of all files that rows are read from, for rows that have no hash of their own.
    """
    row = getattr(item, "row", None)
    if row is None:
        return code
    try:
        values = to_json(row.values).decode()
    except (PydanticSerializationError, ValueError):  # it holds objects: their code may be anywhere
        values = fingerprint(rows, _times([item.path]))
    return fingerprint(code, values, repr(row.marks), row.problem)


def _times(paths: Iterable[str | Path]) -> str:
    """Return a hash of the times at which files changed. Their content is not read, which would count as a use."""
    return fingerprint({str(path): Path(path).stat().st_mtime_ns for path in sorted(paths) if Path(path).exists()})


def _used_files(file: Path, loaded: Mapping[str, str], everywhere: Iterable[str], root: Path) -> set[str]:
    """Return the files that a test file uses: what it imports, and plugins and conftest files with what they import."""
    folders = [folder for folder in file.parents if folder == root or root in folder.parents]
    shared = {*everywhere, *(str(folder / "conftest.py") for folder in folders if (folder / "conftest.py").exists())}
    used = set(shared)
    for each in (str(file), *shared):
        used |= imported_files(each, loaded)
    return used - {str(file)}
