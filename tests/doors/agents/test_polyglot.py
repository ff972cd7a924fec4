"""A folder of tracks, as Aider's polyglot benchmark has it, and languages that are tested by their own commands."""

import json
from pathlib import Path

import pytest

from bakeoff.doors.agents.door import gradable_exercises
from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.doors.agents.plan import ExercisesRequest, case_of
from bakeoff.errors import UsageError
from bakeoff.plan import HIDDEN
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.commands import CommandRunner, tools_of
from bakeoff.toolchains.tracks import CPP, JAVA, RUST, undo_disabled

from .small_tracks import DOUBLE, Files, write_files

CONFIG = ".meta/config.json"


def declared(solution: list[str], test: list[str], example: list[str]) -> str:
    return json.dumps({"files": {"solution": solution, "test": test, "example": example}})


LANGUAGES: dict[str, Files] = {
    "cpp": {
        CONFIG: declared(["double.cpp", "double.h"], ["double_test.cpp"], [".meta/example.cpp", ".meta/example.h"]),
        "CMakeLists.txt": "project(double)\n",
        "test/catch.hpp": "// what its tests need\n",
        "test/tests-main.cpp": "// and its main\n",
        "double.cpp": "// to do\n",
        "double.h": "int twice(int);\n",
        "double_test.cpp": "// tests\n",
        ".meta/example.cpp": "int twice(int n) { return 2 * n; }\n",
        ".meta/example.h": "int twice(int);\n",
    },
    "go": {
        CONFIG: declared(["double.go"], ["double_test.go"], [".meta/example.go"]),
        "go.mod": "module double\n",
        "double.go": "package double\n",
        "double_test.go": "package double\n",
        ".meta/example.go": "package double\n\nfunc Double(n int) int { return 2 * n }\n",
    },
    "java": {
        CONFIG: declared(["src/main/java/D.java"], ["src/test/java/DTest.java"], [".meta/src/reference/java/D.java"]),
        "src/main/java/D.java": "class D {}\n",
        "src/test/java/DTest.java": "class DTest {}\n",
        ".meta/src/reference/java/D.java": "class D { int twice; }\n",
    },
    "python": DOUBLE,
    "rust": {
        CONFIG: declared(["src/lib.rs", "Cargo.toml"], ["tests/double.rs"], [".meta/example.rs"]),
        "Cargo.toml": "[package]\n",
        "src/lib.rs": "// to do\n",
        "tests/double.rs": "// tests\n",
        ".meta/example.rs": "pub fn double() {}\n",
    },
}


@pytest.fixture
def polyglot(tmp_path: Path) -> Path:
    """It has no config.json for a track: the name of a folder is the language."""
    for language, files in LANGUAGES.items():
        instructions = {".docs/instructions.md": "Double a number.\n"}
        write_files(tmp_path / "bench" / language / "exercises/practice/double", {**instructions, **files})
    return tmp_path / "bench"


def test_every_language_of_a_folder_of_tracks_is_found(polyglot: Path) -> None:
    found = {each.name: each for each in find_exercises(polyglot).exercises}
    assert list(found) == ["cpp/double", "go/double", "java/double", "python/double", "rust/double"]
    assert [each.track.slug for each in found.values()] == ["cpp", "go", "java", "python", "rust"]
    assert found["rust/double"].example == {"src/lib.rs": "pub fn double() {}\n"}
    assert {"test/catch.hpp", "test/tests-main.cpp", "CMakeLists.txt"} <= set(found["cpp/double"].files)
    assert [each.name for each in find_exercises(polyglot, ["go/double"]).exercises] == ["go/double"]
    with pytest.raises(UsageError, match="--exercise 'go/doubel' does not exist: did you mean 'go/double'"):
        find_exercises(polyglot, ["go/doubel"])


def test_one_language_or_one_exercise_of_it_will_do_and_its_whole_track_is_hidden(polyglot: Path) -> None:
    track = polyglot / "rust"
    for place in (track, track / "exercises/practice/double"):
        [only] = find_exercises(place).exercises
        assert (only.name, only.track) == ("double", RUST)
    settings = ExercisesRequest(exercises=track / "exercises/practice/double").settings()
    assert settings[HIDDEN] == [str(track)]


def test_a_language_without_a_runner_of_ours_is_tested_by_its_own_command(polyglot: Path) -> None:
    found = {each.track.slug: each for each in find_exercises(polyglot).exercises}
    commands = {slug: case_of(each, ExercisesRequest()).grading for slug, each in found.items()}
    assert {slug: grading.command for slug, grading in commands.items() if grading} == {
        "cpp": (CPP.command,),
        "go": ("go test ./...",),
        "java": (JAVA.command,),
        "python": (),
        "rust": ("cargo test --offline -- --include-ignored",),
    }
    assert "- Test command: `go test ./...`" in case_of(found["go"], ExercisesRequest()).prompt


async def test_a_language_whose_programs_are_missing_is_left_out_with_the_way_to_get_them(
    polyglot: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fit, warnings = await gradable_exercises(find_exercises(polyglot).exercises, None, print)
    assert [each.name for each in fit] == ["python/double"]
    told = "\n".join(warnings)
    assert "1 go exercise is left out (go/double): `go` is not installed: `apt-get install golang-go`" in told
    assert "`cargo`, `rustc` is not installed: `apt-get install cargo`, or https://rustup.rs" in told
    assert "`g++` is not installed: `apt-get install g++`" in told
    assert "`java`, `javac`" in told
    assert "is not installed: `apt-get install default-jdk-headless junit5 libassertj-core-java`" in told


@pytest.mark.parametrize("home", ["me", "elsewhere"])
def test_compilers_in_home_are_shown_and_home_is_not(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sysroot = tmp_path / "me/.rustup/toolchains/stable"
    tools = {
        "me/.cargo/bin/cargo": "#!/bin/sh\n",
        "me/.cargo/bin/rustc": "#!/bin/sh\necho $RUSTUP_HOME/toolchains/stable\n",
        "me/.rustup/toolchains/stable/bin/cargo": "#!/bin/sh\n",
    }
    for path in (write_files(tmp_path, tools) / name for name in tools):
        path.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.setenv("PATH", f"{tmp_path / 'me/.cargo/bin'}:/usr/bin:/bin")
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    brought = tools_of(RUST, choose_sandbox("process"))
    assert brought.env["PATH"].startswith(f"{sysroot}/bin:")
    assert sysroot in brought.readable
    assert not [root for root in brought.readable if (tmp_path / "me").is_relative_to(root)]


REPORTING = """#!/bin/sh
for word; do case $word in --reports-dir=*) folder=${word#*=} ;; esac; done
mkdir -p "$folder"
echo '<testsuite><testcase classname="DTest" name="one()"/><testcase classname="DTest" name="two()">
<failure message="expected 4"/></testcase></testsuite>' > "$folder/TEST-junit-jupiter.xml"
exit 1
"""


@pytest.mark.parametrize(
    ("java", "outcomes"),
    [
        (REPORTING, [("DTest > one()", "passed"), ("DTest > two()", "failed")]),
        ("#!/bin/sh\nexit 0\n", []),  # an answer ended the process before the tests did
    ],
)
async def test_java_is_tested_by_junit_whose_report_counts(
    java: str, outcomes: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = {"bin/java": java, "bin/javac": '#!/bin/sh\n[ -n "$CLASSPATH" ]\n'}
    for path in (write_files(tmp_path, tools) / name for name in tools):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    files = {name: text for name, text in LANGUAGES["java"].items() if name.startswith("src/")}
    runner = CommandRunner(choose_sandbox("process"), JAVA, JAVA.command or "")
    done = await runner.run(files, seconds=30.0)
    assert [(test.name, test.state) for test in done.tests] == outcomes
    assert not done.ok


def test_later_tests_of_java_are_run_and_others_stay_disabled() -> None:
    source = '@Disabled("Remove to run test")\n@Test\nvoid a() {}\n@Disabled("flaky")\n@Test\nvoid b() {}\n'
    assert undo_disabled(source) == source.replace('@Disabled("Remove to run test")', "")


def test_an_example_of_more_files_than_the_solution_is_whole(tmp_path: Path) -> None:
    """References of Java have classes of their own beside those that a solution must have."""
    files = {
        **LANGUAGES["java"],
        ".docs/instructions.md": "Double a number.\n",
        CONFIG: declared(
            ["src/main/java/D.java"],
            ["src/test/java/DTest.java"],
            [".meta/src/reference/java/Helper.java", ".meta/src/reference/java/D.java"],
        ),
        ".meta/src/reference/java/Helper.java": "class Helper {}\n",
    }
    [found] = find_exercises(write_files(tmp_path / "java/exercises/practice/double", files)).exercises
    assert found.example == {
        "src/main/java/D.java": "class D { int twice; }\n",
        "src/main/java/Helper.java": "class Helper {}\n",
    }
