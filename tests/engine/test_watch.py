"""Waiting for changes of files, and running a cycle after each."""

import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from bakeoff.engine.watch import (
    GONE,
    Changes,
    FileStates,
    WatchLoop,
    forget_modules,
    remaining_limits,
    source_files,
)
from bakeoff.errors import InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.record import Usage


class Watched:
    """A loop over the files of a folder, whose cycles do what a test gives them, one after the other."""

    def __init__(self, folder: Path, *steps: Callable[[], int | None]) -> None:
        self.folder, self._steps = folder, iter(steps)
        self.changes: list[Changes] = []
        self.said: list[str] = []
        self.loop = WatchLoop(lambda: set(source_files(folder, "")), self._cycle, self.said.append)

    def _cycle(self, changed: Changes) -> int:
        self.changes.append({str(Path(path).relative_to(self.folder)): state for path, state in changed.items()})
        step = next(self._steps, None)
        self.loop.ended = step is None
        return (step() if step else None) or 0


def test_a_change_during_a_cycle_starts_the_next_one_and_several_are_one(tmp_path: Path) -> None:
    def save(text: str) -> None:
        for name in ("a.py", "b.py"):
            (tmp_path / name).write_text(text)

    save("1")
    watched = Watched(tmp_path, lambda: save("2"), lambda: save("3"))
    before = FileStates()([str(tmp_path / "a.py")])[str(tmp_path / "a.py")]
    assert watched.loop.run() == 0
    assert [sorted(changed) for changed in watched.changes] == [[], ["a.py", "b.py"], ["a.py", "b.py"]]
    assert watched.changes[1]["a.py"] == before
    assert watched.said == ["Waiting for changes; Ctrl-C ends.", "", *watched.said[2:]]
    assert "a.py, " in watched.said[2]


def test_a_save_wakes_the_loop(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("1")
    loop = WatchLoop(lambda: [str(file)], lambda _: 0, print)
    saving = Thread(target=lambda: file.write_text("2"))
    saving.start()
    assert [*loop.wait()] == [str(file)]
    saving.join()


def test_a_file_that_an_editor_replaces_is_not_missing_in_between(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("1")
    asked = 0

    def sources() -> list[str]:
        nonlocal asked
        asked += 1
        file.unlink() if asked == 2 else file.write_text("2" if asked > 2 else "1")
        return [str(file)]

    loop = WatchLoop(sources, lambda _: 0, print)
    (before,) = loop.wait().values()
    assert before not in (None, GONE)
    assert asked == 3


def test_errors_are_told_and_the_loop_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.touch()

    def fail(error: Exception) -> int:
        file.write_text(str(error))
        raise error

    watched = Watched(tmp_path, lambda: fail(UsageError("first\nsecond")), lambda: fail(InfraError("third")))
    watched.loop.run()
    assert [line for line in watched.said if line.startswith("error")] == [
        "error: first",
        "error: second",
        "error: third",
    ]
    assert len(watched.changes) == 3


def test_ctrl_c_ends_with_the_code_of_the_last_cycle(tmp_path: Path) -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    file = tmp_path / "a.py"
    assert Watched(tmp_path, lambda: file.write_text("1") + 2, interrupt).loop.run() == 3


def test_a_data_file_that_changes_in_every_cycle_is_not_watched(tmp_path: Path) -> None:
    data, code = tmp_path / "log.json", tmp_path / "a.py"
    data.touch()

    def log() -> None:
        data.write_text(data.read_text() + "x")

    def log_and_save() -> None:
        log()
        code.write_text("1")

    watched = Watched(tmp_path, log, log, log_and_save)
    watched.loop.run()
    assert [sorted(changed) for changed in watched.changes] == [[], ["log.json"], ["log.json"], ["a.py"]]
    assert any("log.json changes in every cycle" in line for line in watched.said)


def test_the_state_of_a_file_is_its_content(tmp_path: Path) -> None:
    file, states = tmp_path / "a.txt", FileStates()
    path = str(file)
    file.write_text("one")
    first = states([path])[path]
    new = tmp_path / "new"
    new.write_text("one")
    new.replace(file)  # as editors save
    assert states([path]) == {path: first}
    file.write_text("two!")
    assert states([path])[path] not in (first, GONE)
    file.unlink()
    assert states([path]) == {path: GONE}


def test_the_state_of_a_folder_is_the_names_in_it(tmp_path: Path) -> None:
    states, path = FileStates(), str(tmp_path)
    before = states([path])
    (tmp_path / ".a.swp").touch()
    (tmp_path / "a~").touch()
    (tmp_path / "__pycache__").mkdir()
    assert states([path]) == before
    (tmp_path / "a.md").touch()
    assert states([path]) != before


def test_only_sources_of_the_project_are_watched(tmp_path: Path) -> None:
    for name in ("a.py", "src/b.py", "src/.#b.py", "data.json", ".bakeoff/c.py", ".git/d.py", "src/__pycache__/e.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "env" / "f.py").touch()
    found = {str(Path(path).relative_to(tmp_path)) for path in source_files(tmp_path)}
    assert found == {"a.py", "src/b.py"}


def test_limits_hold_for_all_cycles_together() -> None:
    options = RunOptions(max_cost=2.0, max_total_tokens=100)
    left = remaining_limits(options, Usage(cost=0.5, input=30, output=10))
    assert (left.max_cost, left.max_total_tokens) == (1.5, 60)
    with pytest.raises(UsageError, match="used up"):
        remaining_limits(options, Usage(cost=2.0))
    assert remaining_limits(RunOptions(), Usage(cost=9.0)).max_cost is None


def test_changed_modules_of_a_suite_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("watched_one", "watched_two"):
        (tmp_path / f"{name}.py").touch()
        monkeypatch.delitem(sys.modules, name, raising=False)
        __import__(name)
    files = {str((tmp_path / f"{name}.py").resolve()) for name in ("watched_one", "watched_two")}
    assert not forget_modules([str(tmp_path / "other.py")], files)
    assert "watched_one" in sys.modules
    assert forget_modules([min(files)], files)
    assert {"watched_one", "watched_two"}.isdisjoint(sys.modules)
