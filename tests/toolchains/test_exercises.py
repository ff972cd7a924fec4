"""Exercises are graded by warm Jest, by pytest, or by their track's own command."""

import json
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from bakeoff.errors import GraderError, UsageError
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.commands import without_package_names
from bakeoff.toolchains.exercises import ExerciseToolchain, OpenExercises
from bakeoff.toolchains.install import JEST_SOURCES
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.tracks import PYTHON, TYPESCRIPT, graded_track, split_command

from .conftest import SECONDS
from .exercise_folders import BUNDLED, Exercise, every_exercise, exercise

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

IMPORT = "import { describe, expect, it, jest, test, xit } from '@jest/globals';\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def typescript(needs_program: Callable[[str], str]) -> AsyncIterator[OpenExercises]:
    needs_program("node")
    needs_program("npm")
    async with ExerciseToolchain(lambda: choose_sandbox("auto"), TYPESCRIPT).open() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def python() -> AsyncIterator[OpenExercises]:
    async with ExerciseToolchain(lambda: choose_sandbox("auto"), PYTHON).open() as opened:
        yield opened


async def jest(opened: OpenExercises, test: str, **files: str) -> TestRun:
    given = {f"{name}.ts": text for name, text in files.items()} | {"a.test.ts": IMPORT + test}
    return await opened.run(given, tests=["a.test.ts"], seconds=SECONDS)


def states(run: TestRun) -> dict[str, str]:
    return {test.name: test.state for test in run.tests}


# -------------------------------------------------------------------------------------------------------- tracks


@pytest.mark.parametrize(
    ("skipped", "instead"),
    [
        ("xit('a', () => {})", "it('a', () => {})"),
        ("  xtest ('a')", "  test ('a')"),
        ("xdescribe('a')", "describe('a')"),
        ("xit.each`a`", "it.each`a`"),
    ],
)
async def test_a_skipped_test_is_called(skipped: str, instead: str) -> None:
    assert TYPESCRIPT.unskip(skipped) == instead


@pytest.mark.parametrize(
    "kept",
    [
        *("import { it, xit } from '@jest/globals'", "exit(1)", "this.xit(1)", "const xit = it"),
        *("it.skip('a')", "test.skip.each([1])('a')", "describe.skip('a')", "it.concurrent.skip('a')"),
    ],
)
async def test_what_is_no_skipped_test_stays(kept: str) -> None:
    assert TYPESCRIPT.unskip(kept) == kept


ACTIVE, LATER = "def test_a():\n    pass\n", "@{}\ndef test_b():\n    pass\n"


@pytest.mark.parametrize(
    "mark",
    ["unittest.skip('later')", "skip('later')", "pytest.mark.skip", "pytest.mark.skip(\n    reason='later (b)',\n)"],
)
async def test_the_last_python_tests_are_called_though_they_are_skipped(mark: str) -> None:
    found = PYTHON.unskip(ACTIVE + LATER.format(mark))
    assert [line for line in found.splitlines() if line] == (ACTIVE + LATER).replace("@{}\n", "").splitlines()
    assert found.count("\n") == (ACTIVE + LATER.format(mark)).count("\n"), "lines keep their numbers"


async def test_later_python_tests_may_be_a_class() -> None:
    later = "@unittest.skip('extra credit')\nclass ExtraTest:\n    def test_b(self):\n        pass\n"
    assert "skip" not in PYTHON.unskip(ACTIVE + later)


@pytest.mark.parametrize(
    "kept",
    [
        LATER.format("pytest.mark.skip") + ACTIVE,
        ACTIVE + LATER.format("unittest.skipIf(sys.platform == 'win32', 'no links')"),
        ACTIVE + LATER.format("pytest.mark.xfail"),
        ACTIVE + "def test_b():\n    pytest.skip('here')\n",
        "def test_a(:\n",
    ],
)
async def test_what_python_tests_skip_on_purpose_stays_skipped(kept: str) -> None:
    assert PYTHON.unskip(kept) == kept


async def test_helpers_among_the_test_files_are_no_tests() -> None:
    files = {
        "paasio_test.py": "class PaasioTest(TestCase):\n    def test_a(self): ...",
        "test_utils.py": "class Fake: ...",
    }
    assert PYTHON.tests_among(list(files), files) == ["paasio_test.py"]
    assert PYTHON.tests_among(["test_utils.py"], files) == ["test_utils.py"]
    assert TYPESCRIPT.tests_among(["a.test.ts", "__typetests__/a.tst.ts", "cases.ts"], {}) == ["a.test.ts"]


async def test_a_track_is_found_by_its_language_or_tested_by_a_command() -> None:
    assert graded_track("TypeScript") is TYPESCRIPT
    assert graded_track("python") is PYTHON
    with pytest.raises(
        UsageError, match=r"in 'Rust' have no test runner here, only typescript, javascript, python do; pass --test-"
    ):
        graded_track("Rust")
    assert graded_track("Rust", "cargo test").command == "cargo test"


async def test_packages_are_those_of_the_bundled_track() -> None:
    track = json.loads((BUNDLED / "typescript" / "package.json").read_text())["devDependencies"]
    ours = json.loads((JEST_SOURCES / "package.json").read_text())["dependencies"]
    assert ours.pop("@types/node")  # only type checks use it; the track's own command has none
    assert ours.pop("@exercism/babel-preset-typescript")  # for agents that run the tests of the published track
    assert ours.pop("tstyche")  # for type tests, which the bundled exercises have none of
    assert ours.items() <= track.items()


# -------------------------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("each", every_exercise(), ids=lambda each: f"{each.language}-{each.name}")
async def test_a_reference_passes_every_test_and_a_stub_fails(
    each: Exercise, typescript: OpenExercises, python: OpenExercises
) -> None:
    opened = typescript if each.language == "typescript" else python
    right = await opened.run(each.reference, tests=each.tests, seconds=SECONDS)
    assert right.ok, right
    assert {test.state for test in right.tests} == {"passed"}
    stub = await opened.run(each.stub, tests=each.tests, seconds=SECONDS)
    assert not stub.ok
    assert stub.tampered is None, stub
    assert stub.stop == "finished"


async def test_skipped_tests_run_unless_they_are_to_stay_skipped(typescript: OpenExercises) -> None:
    test = "it('one', () => { expect(1).toBe(1); });\nxit('two', () => { expect(1).toBe(2); });"
    assert states(await jest(typescript, test)) == {"one": "passed", "two": "failed"}
    async with ExerciseToolchain(lambda: choose_sandbox("auto"), run_skipped=False).open() as as_they_are:
        assert states(await jest(as_they_are, test)) == {"one": "passed", "two": "skipped"}


JEST = """
import { double } from './a';
let calls = 0;
describe('suite', () => {
  beforeEach(() => { calls += 1; });
  it('counts', () => { expect(calls).toBe(1); });
  it.each([[1, 2], [2, 4]])('doubles %i', (from, to) => { expect(double(from)).toBe(to); });
  it('matches', () => {
    expect({ a: [1], b: 'text' }).toEqual({ a: expect.any(Array), b: expect.stringContaining('ex') });
    expect([3, 1]).toEqual(expect.arrayContaining([1]));
    expect(double(2)).toEqual(expect.any(Number));
  });
  it('mocks', () => {
    const mock = jest.fn((x: number) => x + 1);
    expect([1, 2].map((x) => mock(x))).toEqual([2, 3]);
    expect(mock).toHaveBeenNthCalledWith(2, 2);
  });
  it('has time of its own', () => {
    jest.useFakeTimers();
    let rang = false;
    setTimeout(() => { rang = true; }, 1000);
    jest.advanceTimersByTime(1000);
    expect(rang).toBe(true);
    jest.useRealTimers();
  });
  it('waits', async () => { await expect(Promise.reject(new Error('no'))).rejects.toThrow('no'); });
  it('counts assertions', () => { expect.assertions(2); expect(1).toBe(1); });
  it.todo('later');
  test('throws', () => { double('x' as never); });
});
"""


async def test_what_suites_use_of_jest_is_there(typescript: OpenExercises) -> None:
    double = (
        "export const double = (x: number) => { if (typeof x !== 'number') throw new TypeError('x'); return 2 * x; }"
    )
    run = await jest(typescript, JEST, a=double)
    assert {name: state for name, state in states(run).items() if state != "passed"} == {
        "suite > counts assertions": "failed",
        "suite > later": "skipped",
        "suite > throws": "failed",
    }
    assert len(run.tests) == 10
    assert (run.tampered, run.error) == (None, None)
    assert run.tests[-1].message == "TypeError: x"


async def test_mocked_modules_and_snapshots_are_run_by_a_whole_jest(typescript: OpenExercises) -> None:
    test = """
    import { one } from './a';
    jest.mock('./b', () => ({ two: () => 22 }));
    it('mocks', () => { expect(one()).toBe(22); });
    it('fails', () => { expect(one()).toBe(2); });
    """
    run = await jest(
        typescript,
        test,
        a="import { two } from './b'; export const one = () => two();",
        b="export const two = () => 2;",
    )
    assert states(run) == {"mocks": "passed", "fails": "failed"}
    assert (run.tampered, run.error) == (None, None)


async def test_a_solution_that_does_not_compile_says_where(typescript: OpenExercises) -> None:
    run = await jest(
        typescript, "import { a } from './a';\nit('a', () => { expect(a).toBe(1); });", a="export const a = (;"
    )
    assert not run.ok
    assert "a.ts: Unexpected token (1:18)" in (run.error or "")


async def test_several_test_files_are_one_run(typescript: OpenExercises, python: OpenExercises) -> None:
    files = {"a.test.ts": "it('a', () => {});", "b.test.ts": "it('b', () => { expect(1).toBe(2); });"}
    run = await typescript.run(files, tests=["a.test.ts", "b.test.ts"], seconds=SECONDS)
    assert states(run) == {"a": "passed", "b": "failed"}
    two = {
        "a_test.py": "def test_a(): pass",
        "b_test.py": "from a import b\ndef test_b(): assert b == 1",
        "a.py": "b = 1",
    }
    assert states(await python.run(two, tests=["a_test.py", "b_test.py"], seconds=SECONDS)) == {
        "test_a": "passed",
        "test_b": "passed",
    }


async def test_an_exercise_without_its_test_file_is_an_error_of_ours(typescript: OpenExercises) -> None:
    with pytest.raises(GraderError, match=r"no test file a\.test\.ts"):
        await typescript.run({}, tests=["a.test.ts"], seconds=SECONDS)


# ------------------------------------------------------------------------------------------------- the own command


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("corepack yarn && corepack yarn test", ("corepack yarn", "corepack yarn test")),
        ("npm ci --ignore-scripts && npm test && true", ("npm ci --ignore-scripts", "npm test && true")),
        ("yarn install && yarn test", ("yarn install", "yarn test")),
        ("pytest -q", (None, "pytest -q")),
        ("make clean && make test", (None, "make clean && make test")),
        ("yarn test && yarn lint", (None, "yarn test && yarn lint")),
    ],
)
async def test_the_part_that_installs_is_told_from_the_tests(command: str, parts: tuple[str | None, str]) -> None:
    assert split_command(command) == parts


async def test_exercises_of_a_track_share_what_is_installed() -> None:
    one, two = (without_package_names(exercise("typescript", name).stub) for name in ("shelf-labels", "polite-pool"))
    assert one["package.json"] == two["package.json"]
    locked = {
        "package.json": '{"name": "@a/b"}',
        "yarn.lock": '"@a/b@workspace:.":\n  resolution: "@a/b@workspace:."\n',
    }
    assert (
        without_package_names(locked)["yarn.lock"] == '"exercise@workspace:.":\n  resolution: "exercise@workspace:."\n'
    )
    assert without_package_names({"package.json": "{", "a": "b"}) == {"package.json": "{", "a": "b"}


async def test_the_commands_of_the_tracks_agree_with_us(needs_program: Callable[[str], str]) -> None:
    needs_program("corepack")
    typed = {"typescript": "corepack yarn && corepack yarn test", "python": "pytest"}
    for each in (exercise("typescript", "shelf-labels"), exercise("python", "ring-log")):
        track, command = graded_track(each.language), typed[each.language]
        toolchain = ExerciseToolchain(lambda: choose_sandbox("auto"), track, command=command)
        async with toolchain.open() as opened:
            right = await opened.run(each.reference, tests=each.tests, seconds=3 * SECONDS)
            assert right.ok, right
            assert len(right.tests) > 1
            stub = await opened.run(each.stub, tests=each.tests, seconds=3 * SECONDS)
            assert not stub.ok
            assert stub.tampered is None


async def test_any_language_is_tested_by_its_command() -> None:
    command = "sh two_test.sh"
    track = graded_track("shell", command)
    async with ExerciseToolchain(lambda: choose_sandbox("auto"), track, command=command).open() as opened:
        files = {"two.sh": "echo 2", "two_test.sh": "test $(sh two.sh) = 2"}
        assert (await opened.run(files, tests=["two_test.sh"], seconds=SECONDS)).ok
        wrong = await opened.run(files | {"two.sh": "echo 3"}, tests=["two_test.sh"], seconds=SECONDS)
        assert states(wrong) == {"sh two_test.sh": "failed"}
