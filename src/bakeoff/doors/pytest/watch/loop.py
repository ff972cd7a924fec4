"""Wait for changes, and run a pytest for each cycle: in a new process everything is imported anew."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pytest
from pydantic import ValidationError

from bakeoff._kernel.temporary import temporary_folder
from bakeoff._kernel.text import visible
from bakeoff._kernel.watch import WAITING, FileStates, FileWatch, source_files
from bakeoff.doors.pytest.options import WATCH_CYCLE, results_folder
from bakeoff.doors.pytest.watch.cycle import PAGE, told_file
from bakeoff.doors.pytest.watch.state import Cycle, WatchMessages, stale_tests
from bakeoff.errors import BakeoffError
from bakeoff.report.render.html import write_cycle
from bakeoff.storage.run_folder import RunFolder

_MAX_NAMED = 3
_RESTLESS = 3  # cycles in a row that change a file by themselves, after which it is not watched any more


def watch(config: pytest.Config) -> int:
    """Run cycles until Ctrl-C; return the exit code of the last one."""
    if config.option.eval_until_decided:
        raise pytest.UsageError("--eval-watch keeps results, and --eval-until-decided needs all anew: use one of them")
    page = config.invocation_params.dir / (config.option.eval_html or results_folder(config) / PAGE)
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)  # cycles read from the terminal, for --pdb
    write_cycle(page, None)  # an earlier watch may have been killed
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with temporary_folder("bakeoff-watch-") as folder:
            return WatchLoop(config, folder, page).run()
    finally:
        write_cycle(page, None)


class WatchLoop:
    """The cycles of one watch."""

    def __init__(self, config: pytest.Config, folder: Path, page: Path) -> None:
        self._command, self._arguments = _command(config)
        self._folder = config.invocation_params.dir
        self._root = config.rootpath
        self._without = {str(results_folder(config) / "runs")}
        self._test_files: list[str] = config.getini("python_files")
        self._file = folder / "cycle.json"
        self._page = page
        self._states = FileStates()
        self._used: set[str] = set()  # files that count besides the source files of the project
        self._changing: Counter[str] = Counter()
        self._watch = FileWatch(self._look, self._look())
        self._told: WatchMessages | None = None
        self._run: str | None = None  # the folder in which the last cycle is kept
        self._owed: dict[str, str | None] = {}  # changes since the last cycle that was complete
        self._number = 0

    def _look(self) -> dict[str, str]:
        return self._states(sorted({*source_files(self._root, without=self._without), *self._used}))

    def run(self) -> int:
        code = 0
        with suppress(KeyboardInterrupt):
            while True:
                code, interrupted = self._cycle()
                if interrupted or (code == pytest.ExitCode.USAGE_ERROR and self._number == 1):
                    return code
                page = f" Page: {visible(os.path.relpath(self._page), 200)}" if self._page.exists() else ""
                _say(f"{WAITING}{page}")
                self._wait()
        return code

    def _wait(self) -> None:
        """Wait for a change that may concern a test."""
        while True:
            changed = self._watch.wait()
            self._owed.update({path: changed[path] for path in changed if path not in self._owed})
            concerned = [path for path in changed if not self._is_other_test(path)]
            if concerned:
                names = [visible(os.path.relpath(path, self._folder), 100) for path in sorted(concerned)]
                more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
                _say(f"\nChanged: {', '.join(names[:_MAX_NAMED])}{more}")
                return

    def _is_other_test(self, path: str) -> bool:
        """Tell whether a path is that of a test file which is there all along, and that no test of ours uses."""
        known = self._told is not None and path in self._told.files
        is_test = any(fnmatch(Path(path).name, pattern) for pattern in self._test_files)
        return is_test and not known and self._owed.get(path) is not None

    def _cycle(self) -> tuple[int, bool]:
        """Run a cycle; return its exit code, and whether Ctrl-C ended it."""
        self._number += 1
        self._file.write_text(self._request().model_dump_json(exclude_defaults=True), encoding="utf-8")
        told_file(self._file).unlink(missing_ok=True)
        began = time.time()
        code, interrupted = _run([*self._command, f"{WATCH_CYCLE}={self._file}", *self._arguments], self._folder)
        self._take(began)
        return code, interrupted

    def _request(self) -> Cycle:
        told = self._told
        if told is None:
            return Cycle(number=self._number)
        changed = {path: before for path, before in self._owed.items() if not self._is_other_test(path)}
        stale = stale_tests(changed, told)
        return Cycle(number=self._number, all=stale is None, stale=tuple(sorted(stale or ())), tests=told.tests)

    def _take(self, began: float) -> None:
        """Take what the cycle has told, and watch the files that it has used."""
        try:
            told = WatchMessages.model_validate_json(told_file(self._file).read_bytes())
        except (OSError, ValidationError):  # it ended before it could tell
            return
        earlier, self._told = self._told, told.after(self._told or WatchMessages())
        if told.complete:
            self._owed.clear()
        else:
            self._told = earlier
        if told.run is not None:
            if self._run is not None:
                _delete(RunFolder(Path(self._run)))
            self._run = told.run
        self._follow(told, began)

    def _follow(self, told: WatchMessages, began: float) -> None:
        """Watch the files that a cycle has used, without those that tests change in every cycle."""
        now = self._states(told.files | self._used)
        for path, state in now.items():
            if path.endswith(".py"):
                self._watch.known.setdefault(path, state)
                continue
            is_changing = self._watch.known.get(path, state) != state or _changed_since(path, began)
            self._changing[path] = self._changing[path] + 1 if is_changing else 0
            if path not in self._watch.known:
                self._watch.known[path] = "" if is_changing else state
            if self._changing[path] >= _RESTLESS:
                self._watch.known[path] = state
            if self._changing[path] == _RESTLESS:
                _say(f"{visible(path, 200)} changes in every cycle: it is not watched while it does")
        self._used = {path for path in now if self._changing[path] < _RESTLESS}


def _changed_since(path: str, moment: float) -> bool:
    try:
        return Path(path).is_file() and Path(path).stat().st_mtime > moment
    except OSError:
        return False


def _delete(run: RunFolder) -> None:
    """Delete the run of the cycle before, unless someone has labelled it."""
    with suppress(BakeoffError, OSError):
        if not run.labels_file.exists():
            run.delete()


def _command(config: pytest.Config) -> tuple[list[str], list[str]]:
    """Return the command that started this pytest and its arguments, so that a cycle is started in the same way."""
    given = list(config.invocation_params.args)
    typed: list[str] = sys.orig_argv[1:]
    if given and typed[-len(given) :] == given:
        return [sys.executable, *typed[: -len(given)]], given
    return [sys.executable, "-m", "pytest"], given


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
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
