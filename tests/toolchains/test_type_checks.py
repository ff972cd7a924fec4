"""Type checks of TypeScript answers: what `tsc` says of the folder, from a process that never runs it."""

import json
import time
from collections.abc import AsyncIterator, Callable

import pytest

from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.exercises import TypeChecker
from bakeoff.toolchains.install import install_jest, quiet

pytestmark = pytest.mark.full


FILES = {
    "double.ts": "export const double = (x: number): number => 2 * x\n",
    "double.test.ts": (
        "import { expect, it, xit } from '@jest/globals'\nimport { double } from './double'\n"
        "it('one', () => { expect(double(1)).toBe(2) })\nxit('two', () => { expect(double(2)).toBe(4) })\n"
    ),
    "__typetests__/double.tst.ts": "import { expect, test } from 'tstyche'\nimport { double } from '../double'\n"
    "test('a number', () => { expect(double(1)).type.toBe<number>() })\n",
}


@pytest.fixture
async def checker(needs_program: Callable[[str], str]) -> AsyncIterator[TypeChecker]:
    needs_program("npm")
    made = TypeChecker(choose_sandbox(), await install_jest(quiet))
    yield made
    await made.close()


async def test_types_are_checked_as_the_compiler_of_the_track_does(checker: TypeChecker) -> None:
    assert await checker.check(FILES, 60) is None

    async def found(**changed: str) -> str:
        names = {name.replace("_json", ".json").replace("_ts", ".ts"): text for name, text in changed.items()}
        return await checker.check({**FILES, **names}, 60) or ""

    assert "double.ts(1,46): error TS2322" in await found(
        double_ts="export const double = (x: number): string => 2 * x\n"
    )
    assert "error TS7006" in await found(double_ts="export const double = (x) => 2 * x\n"), "strict by default"
    assert "double.test.ts(2,10): error TS2305" in await found(double_ts="export const triple = 3\n")
    assert "helper.ts" in await found(helper_ts="export const one: number = 'one'\n"), "also where nothing imports it"
    loose = json.dumps({"compilerOptions": {"strict": False, "module": "esnext", "moduleResolution": "bundler"}})
    assert await found(tsconfig_json=loose, double_ts="export const double = (x) => 2 * x\n") == ""
    assert "TS" in await found(tsconfig_json=json.dumps({"extends": "@tsconfig/nowhere/tsconfig.json"}))
    wide = "export const double = (x: number): number | string => 2 * x\n"
    assert "type errors: __typetests__/double.tst.ts:3:54 ❭ a number: Type 'str" in await found(double_ts=wide)
    many = "".join(f"export const n{number}: string = {number}\n" for number in range(9))
    assert "and 6 more" in await found(helper_ts=many)


async def test_a_check_that_takes_too_long_affects_no_other(checker: TypeChecker) -> None:
    assert "not checked within" in (await checker.check(FILES, 0.0001) or "")
    assert await checker.check(FILES, 60) is None


async def test_the_examples_of_all_bundled_exercises_have_right_types(checker: TypeChecker) -> None:
    exercises = [each for each in find_exercises(None).exercises if each.track.slug == "typescript"]
    assert len(exercises) == 10
    seconds = []
    for exercise in exercises:
        started = time.monotonic()
        assert await checker.check({**exercise.files, **exercise.example}, 60) is None, exercise.name
        seconds.append(time.monotonic() - started)
    print(f"type checks, warm: {1000 * sorted(seconds)[5]:.0f} ms each (median of {len(seconds)})")
