"""The hooks of one cycle: leave out the tests whose results are kept, and tell what the others used and came to."""

import json
import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_core import PydanticSerializationError, to_json

import bakeoff
from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import count_of
from bakeoff._kernel.watch import FileStates
from bakeoff.doors.pytest.gather import FINAL, gathering
from bakeoff.doors.pytest.groups import KEPT_GROUPS, Group
from bakeoff.doors.pytest.lost import subjects_among
from bakeoff.doors.pytest.options import results_folder
from bakeoff.doors.pytest.run_writer import ignore_in_git
from bakeoff.doors.pytest.watch.reads import Reads
from bakeoff.doors.pytest.watch.source import ANYTHING, TestParts, imported_files, loaded_files
from bakeoff.doors.pytest.watch.state import Cycle, KeptTest, WatchMessages
from bakeoff.plan import SubjectSpec
from bakeoff.report.suites.outcomes import EvalOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PLUGIN = "bakeoff-watch"
PAGE = "watch.html"
"""The page of a watch in the folder of results, if none is named."""

_WORKER_OUTPUT = "bakeoff_watch"
_NOT_WATCHED = tuple(str(Path(file).parent) + os.sep for file in (os.__file__, bakeoff.__file__) if file)


def told_file(cycle_file: Path) -> Path:
    """Return the file in which a cycle tells what it came to."""
    return cycle_file.with_suffix(".told")


def begin_cycle(config: pytest.Config, cycle_file: Path) -> None:
    """Register the hooks of a cycle, for `pytest_configure`."""
    if config.option.eval_html is None and not hasattr(config, "workerinput"):
        folder = results_folder(config)
        config.option.eval_html = folder / PAGE
        folder.mkdir(parents=True, exist_ok=True)
        ignore_in_git(folder)
    config.pluginmanager.register(WatchCycle(config, cycle_file), PLUGIN)


class WatchCycle:
    """One cycle, in each of its processes."""

    def __init__(self, config: pytest.Config, cycle_file: Path) -> None:
        self._config = config
        self._told_file = told_file(cycle_file)
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
        return self._cycle.number

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests whose results are kept."""
        parts: dict[Path, TestParts | None] = {}
        with self._reads.paused():
            rows = fingerprint(FileStates()(self._reads.of_rows()))
        selected: list[pytest.Item] = []
        kept: list[pytest.Item] = []
        for item in items:
            if item.path not in parts:
                parts[item.path] = _parts(item.path)
            mark = _fingerprint(item, parts[item.path], rows)
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
        told = getattr(node, "workeroutput", {}).get(_WORKER_OUTPUT)
        if told is None:
            return
        for name, found in json.loads(told).items():
            if name in ("imports", "reads"):
                self._add_users(name, found)
            else:
                self._known[name] = found

    def _add_users(self, name: str, found: "Mapping[str, Iterable[str]]") -> None:
        known = self._known[name]
        for path, users in found.items():
            known[path] = sorted({*known.get(path, ()), *users})

    def kept_outcomes(self) -> "Iterator[EvalOutcome]":
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
        reads = {path: sorted(by) for path, by in self._reads.found.items()}
        if session.config.inipath is not None:
            reads[str(session.config.inipath)] = [ANYTHING]
        self._add_users("reads", reads)
        loaded = {name: file for name, file in loaded_files().items() if self._is_source(file)}
        everywhere = self._plugins(loaded)
        for file in dict.fromkeys(item.path for item in self._tests):
            self._known["imports"][str(file)] = sorted(_used_files(file, loaded, everywhere, session.config.rootpath))
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_WORKER_OUTPUT] = json.dumps(self._known)

    def _is_source(self, file: str) -> bool:
        """Tell whether a module is of the project, or developed elsewhere: not installed."""
        library = any(part in ("site-packages", "dist-packages", "lib-dynload") for part in Path(file).parts)
        return self._reads.is_ours(file) or not (library or file.startswith(_NOT_WATCHED))

    def _plugins(self, loaded: "Mapping[str, str]") -> set[str]:
        """Return the files of the project that are plugins for every test."""
        ours = set(loaded.values())
        plugins = (each for each in self._config.pluginmanager.get_plugins() if isinstance(each, ModuleType))
        files = {str(getattr(plugin, "__file__", None)) for plugin in plugins} & ours
        return {file for file in files if Path(file).name != "conftest.py"}

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Tell what the cycle came to, once the run is written."""
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
        told = WatchMessages(
            complete=self._collected_all and bool(marks),
            run=None if self.run is None else str(self.run),
            tests=tests,
            imports=self._known["imports"],
            reads=self._known["reads"],
        )
        write_atomically(self._told_file, told.model_dump_json(exclude_defaults=True).encode())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if kept := len(self._known["kept"]):
            words = count_of(kept, "result is", "results are")
            terminalreporter.write_line(f"watch: {words} kept from earlier cycles")


def _parts(path: Path) -> TestParts | None:
    try:
        return TestParts(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):  # not a file of Python: a test of another plugin
        return None


def _fingerprint(item: Any, parts: TestParts | None, rows: str) -> str:
    """Return a hash of the row of a test and of what it uses in its own file.

    Args:
        item: The test.
        parts: The source of its file, if that is Python.
        rows: A hash of all files that rows are read from, for rows that have no hash of their own.
    """
    if parts is None:
        return FileStates()([str(item.path)])[str(item.path)]
    inside = [node for node in item.listchain() if isinstance(node, pytest.Class | pytest.Item)]
    code = parts.digest(inside[0].name.partition("[")[0])
    row = getattr(item, "row", None)
    if row is None:
        return code
    try:
        values = to_json(row.values).decode()
    except (PydanticSerializationError, ValueError):  # it holds objects: their code may be anywhere
        values = fingerprint(rows, item.path.read_text(encoding="utf-8"))
    return fingerprint(code, values, repr(row.marks), row.problem)


def _used_files(file: Path, loaded: "Mapping[str, str]", everywhere: "Iterable[str]", root: Path) -> set[str]:
    """Return the files that a test file uses: what it imports, and plugins and conftest files with what they import."""
    folders = [folder for folder in file.parents if folder == root or root in folder.parents]
    shared = {*everywhere, *(str(folder / "conftest.py") for folder in folders if (folder / "conftest.py").exists())}
    used = set(shared)
    for each in (str(file), *shared):
        used |= imported_files(each, loaded)
    return used - {str(file)}
