"""Waiting for changes of files."""

from pathlib import Path

from bakeoff._kernel.watch import GONE, FileStates, FileWatch, source_files


def test_a_burst_of_saves_is_one_change() -> None:
    looks = iter([{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 3, "b": 1}, {"a": 3, "b": 1, "c": 1}])
    seen: list[dict[str, int]] = []

    def look() -> dict[str, int]:
        seen.append(next(looks, {"a": 3, "b": 1, "c": 1}))
        return seen[-1]

    watch = FileWatch(look, {"a": 1, "b": 1})
    assert watch.wait() == {"a": 1, "c": None}
    assert len(seen) == 5
    assert watch.known == {"a": 3, "b": 1, "c": 1}


def test_a_file_that_an_editor_replaces_is_not_missing_in_between() -> None:
    looks = iter(["old", GONE, "old", "old", GONE, "new"])
    watch = FileWatch(lambda: {"file": next(looks, "new")}, {"file": "old"})
    assert watch.wait() == {"file": "old"}
    assert watch.known == {"file": "new"}


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
