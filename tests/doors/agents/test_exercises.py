"""Finding and reading exercises: tracks, single folders, fallbacks, and whatever can be wrong with them."""

import json
from pathlib import Path

import pytest

from bakeoff.doors.agents.exercises import STANDARD, Exercise, find_exercises
from bakeoff.doors.agents.plan import ExercisesRequest, case_of
from bakeoff.errors import UsageError
from bakeoff.grading.cases import graded_case

from .small_tracks import DOUBLE, PAIR, bytes_of, with_files, write_files, write_track


def names(found: tuple[Exercise, ...]) -> list[str]:
    return [exercise.name for exercise in found]


def test_a_track_is_read_in_its_own_order(tmp_path: Path) -> None:
    root = write_track(tmp_path / "track", pair=PAIR, double=DOUBLE)
    found = find_exercises(root)
    assert names(found.exercises) == ["pair", "double"]
    assert [exercise.track.slug for exercise in found.exercises] == ["python", "python"]


def test_one_folder_is_an_exercise_of_its_track(tmp_path: Path) -> None:
    root = write_track(tmp_path / "track", pair=PAIR, double=DOUBLE)
    (root / "AGENTS.md").write_text("Be brief.\n")
    [exercise] = find_exercises(root / "exercises" / "practice" / "double").exercises
    assert exercise.name == "double"
    assert exercise.track.language == "Python"
    assert exercise.notes == {"AGENTS.md": "Be brief."}


ANSWER = "def double(number):\n    return 2 * number  # the answer\n"
TRAPS = {
    **dict.fromkeys(
        (
            *(".approaches/loop/content.md", ".approaches/config.json", ".articles/speed/snippet.md", ".articles/a.py"),
            *(
                ".meta/example.py",
                ".meta/tests.toml",
                ".meta/additional_tests.json",
                ".docs/solution.md",
                ".docs/a/b.md",
            ),
            *(".docs/instructions.md.orig", ".history/double.py", ".double.py.swp", ".vscode/settings.json", ".env"),
            *("solution.py", "solutions/double.py", "answers/double_test.py", "double.py.orig", "double_old.py"),
            *("NOTES.md", "src/double.py", "tests/other_test.py", "reference.py", "example.py", "deep/package.json"),
            *("node_modules/x/index.py", "__pycache__/double.py", ".git/config", ".exercism/metadata.json"),
        ),
        ANSWER,
    ),
    **{f".approaches/{number}/content.md": ANSWER for number in range(600)},
}
SHOWN = {
    *("double.py", "double_test.py", "fake_clock.py", "pytest.ini", "requirements.txt"),
    *(f".docs/{name}" for name in ("introduction.md", "instructions.md", "instructions.append.md", "hints.md")),
}


def test_a_subject_sees_nothing_of_a_track_but_what_is_allowed(tmp_path: Path) -> None:
    more = {
        ".meta/config.json": with_files(editor=["fake_clock.py", ".meta/example.py", ".approaches/loop/content.md"]),
        "fake_clock.py": "",
        "pytest.ini": "[pytest]\n",
        "requirements.txt": "",
        ".docs/hints.md": "Add.",
    }
    root = write_track(tmp_path / "track", double={**DOUBLE, **TRAPS, **more})
    [exercise] = find_exercises(root).exercises
    assert set(exercise.files) == SHOWN
    assert exercise.example == {"double.py": ANSWER}
    case = case_of(exercise, ExercisesRequest())
    graded = graded_case(case)
    assert set(case.files) == set(graded.files) == SHOWN, "workspace and grading folder"
    assert ANSWER not in [*case.files.values(), *case.hidden.values()]
    assert "the answer" not in case.prompt
    listed = {name for name in TRAPS if f"`{name}`" in case.prompt}
    assert not listed


def test_without_a_configuration_no_folder_of_a_track_is_taken_for_a_solution(tmp_path: Path) -> None:
    bare = {name: text for name, text in {**DOUBLE, **TRAPS}.items() if name != ".meta/config.json"}
    bare = {name: text for name, text in bare.items() if name not in ("solution.py", "double_old.py")}
    [exercise] = find_exercises(write_track(tmp_path / "track", double=bare)).exercises
    assert exercise.solution == ("double.py", "src/double.py")
    assert set(exercise.tests) == {"double_test.py", "tests/other_test.py"}
    assert not any(
        name.startswith((".approaches", ".articles", ".meta", "solutions", "answers")) for name in exercise.files
    )


@pytest.mark.parametrize("name", [".meta/example.py", ".approaches/loop/double.py", "node_modules/double.py"])
def test_a_solution_is_not_taken_from_where_tracks_keep_theirs(tmp_path: Path, name: str) -> None:
    root = write_track(
        tmp_path / "t", double={**DOUBLE, name: ANSWER, ".meta/config.json": with_files(solution=[name])}
    )
    with pytest.raises(UsageError, match="keep solutions"):
        find_exercises(root)


def test_instructions_are_put_together_as_people_read_them(tmp_path: Path) -> None:
    [exercise] = find_exercises(write_track(tmp_path / "t", double=DOUBLE)).exercises
    introduction, instructions, appended = (
        exercise.instructions.index(words) for words in ("may be doubled", "Double a number", "Use no loop")
    )
    assert introduction < instructions < appended


def test_examples_belong_to_solutions_by_their_order(tmp_path: Path) -> None:
    [exercise] = find_exercises(write_track(tmp_path / "t", pair=PAIR)).exercises
    assert exercise.example == {"left.py": "LEFT = 20\n", "right.py": "RIGHT = 22\n"}


def test_without_a_configuration_names_say_what_is_what(tmp_path: Path) -> None:
    files = {name: text for name, text in DOUBLE.items() if name != ".meta/config.json"}
    [exercise] = find_exercises(write_track(tmp_path / "t", double={**files, "conftest.py": ""})).exercises
    assert (exercise.solution, exercise.tests) == (("double.py",), ("double_test.py",))
    assert exercise.example == {"double.py": DOUBLE[".meta/example.py"]}


def test_a_published_typescript_track_is_narrowed_to_the_standard_set(tmp_path: Path) -> None:
    one = {"x.ts": "", "x.test.ts": "", ".docs/instructions.md": "do it"}
    extra = dict.fromkeys(("zebra-puzzle", "two-fer"), one)
    root = write_track(tmp_path / "t", slug="typescript", **extra, **dict.fromkeys(STANDARD, one))
    assert names(find_exercises(root).exercises) == list(STANDARD)
    assert names(find_exercises(root, ["two-fer"]).exercises) == ["two-fer"]
    assert names(find_exercises(root, ["3"]).exercises) == list(STANDARD[:3])
    assert sorted(names(find_exercises(root, ["all"]).exercises)) == sorted([*extra, *STANDARD])
    assert len(find_exercises(root, ["26"]).exercises) == 26, "more than the usual ones"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(["double"], ["double"]), (["double,pair"], ["double", "pair"]), (["1"], ["pair"]), (["double", "pair"], 2)],
)
def test_exercises_are_chosen_by_name_by_list_or_by_number(tmp_path: Path, asked: list[str], expected: object) -> None:
    found = names(find_exercises(write_track(tmp_path / "t", pair=PAIR, double=DOUBLE), asked).exercises)
    assert expected in (found, len(found))


def test_a_number_of_exercises_is_that_many_though_some_cannot_be_used(tmp_path: Path) -> None:
    broken = {".docs/instructions.md": "do it"}
    found = find_exercises(write_track(tmp_path / "t", a=broken, pair=PAIR, z=broken, double=DOUBLE), ["2"])
    assert names(found.exercises) == ["pair", "double"]
    assert [text.split("'")[1] for text in found.left_out] == ["a", "z"]


@pytest.mark.parametrize("asked", ["", ",", " , "])
def test_an_empty_choice_is_none_and_not_all(tmp_path: Path, asked: str) -> None:
    with pytest.raises(UsageError, match="names no exercise"):
        find_exercises(write_track(tmp_path / "t", pair=PAIR, double=DOUBLE), [asked])


def test_a_number_of_any_length_is_a_number(tmp_path: Path) -> None:
    track = write_track(tmp_path / "t", pair=PAIR, double=DOUBLE)
    many = find_exercises(track, ["9" * 5000])
    assert len(many.exercises) == 2
    assert many.warnings == ("--exercise 999999999 asks for more than there are: 2 can be used",)
    assert not find_exercises(track, ["2"]).warnings
    assert len(find_exercises(track, ["0" * 5000 + "1"]).exercises) == 1
    with pytest.raises(UsageError, match="asks for none"):
        find_exercises(track, ["0" * 5000])


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    marked = {**DOUBLE, ".meta/config.json": "\ufeff" + DOUBLE[".meta/config.json"]}
    track = write_track(tmp_path / "t", pair=PAIR, double=marked)
    (track / "config.json").write_text("\ufeff" + (track / "config.json").read_text())
    found = find_exercises(track)
    assert names(found.exercises) == ["pair", "double"]
    assert found.warnings == ()


def test_a_misspelt_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'double'"):
        find_exercises(write_track(tmp_path / "t", double=DOUBLE), ["duoble"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({".docs/instructions.md": "", ".docs/introduction.md": "", ".docs/instructions.append.md": ""}, "no instruct"),
        ({".meta/config.json": "{"}, "config.json"),
        ({".meta/config.json": json.dumps({"files": {"test": "double_test.py"}})}, r"files\.test"),
        ({".meta/config.json": json.dumps({"files": {"solution": ["../../secret.py"]}})}, "secret"),
        ({".meta/config.json": json.dumps({"files": {"test": ["double.py"], "solution": ["double.py"]}})}, "both"),
    ],
)
def test_what_cannot_be_used_is_left_out_with_a_sentence(tmp_path: Path, change: dict[str, str], why: str) -> None:
    root = write_track(tmp_path / "t", double={**DOUBLE, **change}, pair=PAIR)
    found = find_exercises(root)
    assert names(found.exercises) == ["pair"]
    with pytest.raises(UsageError, match=why):
        find_exercises(root, ["double"])


def test_a_link_out_of_the_exercise_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    root = write_track(tmp_path / "t", double={name: text for name, text in DOUBLE.items() if name != "double.py"})
    (root / "exercises/practice/double/double.py").symlink_to(secret)
    with pytest.raises(UsageError, match=r"double\.py"):
        find_exercises(root)


def test_a_folder_without_exercises_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no exercise"):
        find_exercises(write_files(tmp_path / "t", {"README.md": ""}))
    with pytest.raises(UsageError, match="not a folder"):
        find_exercises(tmp_path / "nowhere")


def test_reading_leaves_a_checkout_as_it_was(tmp_path: Path) -> None:
    root = write_track(tmp_path / "t", double=DOUBLE, pair=PAIR)
    (root / "exercises/practice/double/double.py").chmod(0o444)
    before = bytes_of(root)
    find_exercises(root)
    assert bytes_of(root) == before


def test_all_bundled_exercises_can_be_read() -> None:
    found = find_exercises(None)
    assert found.warnings == ()
    assert len(found.exercises) == 20
    assert all(exercise.example.keys() == set(exercise.solution) for exercise in found.exercises)


def test_a_command_finds_the_flags_of_the_tracks_test_script_and_nothing_else_of_meta(tmp_path: Path) -> None:
    config = json.loads(with_files()) | {"custom": {"flag.tests.jest": True}, "authors": ["someone"]}
    scripts = json.dumps({"scripts": {"test": "node .meta/test-runner.mjs"}})
    more = {".meta/config.json": json.dumps(config), ".meta/test-runner.mjs": "run()", "package.json": scripts}
    [exercise] = find_exercises(write_track(tmp_path / "t", double={**DOUBLE, **more})).exercises
    hidden = case_of(exercise, ExercisesRequest(test_command="corepack yarn test")).hidden
    assert json.loads(hidden.pop(".meta/config.json")) == {"custom": {"flag.tests.jest": True}}
    assert set(hidden) == {".meta/test-runner.mjs", "double_test.py"}
    assert set(case_of(exercise, ExercisesRequest()).hidden) == {"double_test.py"}
