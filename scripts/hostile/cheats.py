"""Run every attack of `cheat` on every grader in every sandbox there is. None of them may pass.

Each attack is graded as any answer is, with twins. For comparison, the column `alone` shows what a single plain run of
the tests would have said: attacks that pass there show what the twins are for.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from scripts.hostile.options import Options
from scripts.hostile.rows import Findings, Outcome, Row

from bakeoff.doors.agents.exercises import bundled_folder as bundled_exercises
from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.doors.agents.plan import ExercisesRequest
from bakeoff.doors.agents.plan import case_of as exercise_case
from bakeoff.doors.agents.scoring import accepted_files
from bakeoff.doors.components.plan import case_of as component_case
from bakeoff.doors.components.suites import bundled_folder as bundled_suites
from bakeoff.doors.components.suites import find_suites
from bakeoff.engine.resources import open_resources
from bakeoff.errors import GraderError, InfraError
from bakeoff.grading.attacks import FAMILIES, SAMPLE, HostileScript, HostileSolution, attacks_on
from bakeoff.grading.cases import GradedCase, graded_case, run_tests, toolchains_for
from bakeoff.grading.grades import compare_runs, grade_answer
from bakeoff.grading.references import References, reference_of
from bakeoff.plan import Case, Grading
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import available, choose_sandbox, open_place, put_files, take
from bakeoff.toolchains.tracks import TRACKS, missing_programs

COMPILED = ("go", "rust", "java", "cpp")
GRADERS = (
    *("pytest", "unittest", "jest", "whole jest", "vitest", "whole vitest", "react", "vue", "typescript", "javascript"),
    *(track for track in COMPILED if not missing_programs(TRACKS[track])),
)
IN_DOCKER = ("pytest", "unittest")  # the image holds no Node
SAMPLED = {"jest": ("bwrap",), "vitest": ("bwrap",), "pytest": ("process",)}
_SECONDS = 15.0
MAX_GAINED, MIN_TESTS = 0.34, 4  # a share of the tests that no attack may pass, if they are more than a few
_UNITTEST = """\
import unittest

from solution import add, parse


class TestAdd(unittest.TestCase):
    def test_small_numbers(self):
        self.assertEqual(add(1, 2), 3)

    def test_large_numbers(self):
        self.assertEqual(add(1000, 234), 1234)

    def test_negative_numbers(self):
        self.assertEqual(add(-5, -7), -12)

    def test_nothing(self):
        self.assertEqual(add(0, 0), 0)


class TestParse(unittest.TestCase):
    def test_a_sum(self):
        self.assertEqual(parse("4 plus 9"), 13)

    def test_a_difference(self):
        self.assertEqual(parse("9 minus 4"), 5)

    def test_another_word(self):
        with self.assertRaisesRegex(ValueError, "unknown word"):
            parse("9 cubed 4")

    def test_a_list_of_words(self):
        self.assertIn(parse("2 plus 2"), [4])
"""
_SUM = """\
def add(a, b):
    return a + b


def parse(text):
    left, word, right = text.split()
    if word not in ("plus", "minus"):
        raise ValueError("unknown word")
    return add(int(left), int(right) if word == "plus" else -int(right))
"""


def _unittest() -> Case:
    return Case(
        id="sums",
        prompt="",
        collect=("solution.py",),
        hidden={"test_solution.py": _UNITTEST},
        reference={"solution.py": _SUM},
        grading=Grading(runner="pytest", solution=("solution.py",), tests=("test_solution.py",), seconds=_SECONDS),
    )


def _exercise(track: str, name: str) -> Case:
    own = bundled_exercises() / track
    folder = own if own.is_dir() else bundled_exercises().parent / "polyglot" / track
    request = ExercisesRequest(exercises=folder, test_timeout=4 * _SECONDS if track in COMPILED else _SECONDS)
    (found,) = find_exercises(folder, [name]).exercises
    return exercise_case(found, request)


def _component(name: str) -> Case:
    (suite,) = find_suites(bundled_suites(), [name]).suites
    case = component_case(suite)
    assert case.grading is not None
    # A validator that refuses an attack would hide whether it passes the tests.
    return case.model_copy(update={"grading": case.grading.model_copy(update={"validator": None, "seconds": _SECONDS})})


def _with_line(case: Case, line: str) -> Case:
    """Return a case whose tests begin with one more line, here one that only a whole test runner can run."""
    assert case.grading is not None
    more = {name: f"{text}\n{line}\n" for name, text in case.hidden.items() if name in case.grading.tests}
    files = {name: more.get(name, text) for name, text in case.files.items()}
    return case.model_copy(update={"hidden": {**case.hidden, **more}, "files": files, "id": case.id})


def _graders() -> dict[str, Case]:
    """Return a small case for each grader."""
    jest, vitest = _exercise("typescript", "shelf-labels"), _component("quantity-stepper")
    return {
        "pytest": _exercise("python", "plant-rota"),
        "unittest": _unittest(),
        "jest": jest,
        "whole jest": _with_line(jest, "jest.mock('./nothing', () => ({}), { virtual: true })"),
        "vitest": vitest,
        "whole vitest": _with_line(vitest, "vi.mock('./nothing', () => ({}));"),
        "react": _component("react-seat-picker"),
        "vue": _component("vue-pager"),
        "typescript": _component("typescript-slugs"),
        **{track: _exercise(track, "parking-fee") for track in ("javascript", *COMPILED)},
    }


@dataclass(frozen=True, slots=True)
class Graded:
    """Record how one attack ended."""

    attack: HostileSolution | HostileScript
    grader: str
    rung: str
    alone: str
    result: str
    seconds: float

    @property
    def passed(self) -> bool:
        return self.result.startswith("PASSED")

    def __str__(self) -> str:
        name = f"{self.attack.name} ({self.attack.family})"
        return f"{name:42} {self.grader:13} {self.rung:8} {self.alone:7} {self.seconds:6.1f} s  {self.result}"


async def _answer(attack: HostileSolution | HostileScript, case: GradedCase, sandbox: Sandbox) -> Mapping[str, str]:
    """Return the files that an attack hands in. A script runs in a workspace, as an agent does."""
    if isinstance(attack, HostileSolution):
        return attack.files(case)
    async with open_place() as place:
        put_files(place, {name: text.encode() for name, text in case.case.files.items()})
        await sandbox.run(Command(("/bin/sh", "-c", attack.script(case)), place, _SECONDS))
        taken = take(place.work, case.case.collect, max_bytes=50_000_000, max_files=100).files
    return accepted_files(case, {name: data.decode(errors="replace") for name, data in taken.items()})


async def _try(
    attack: HostileSolution | HostileScript,
    grader: str,
    case: GradedCase,
    sandbox: Sandbox,
    resources: Mapping[str, Any],
) -> Graded:
    started, alone = time.monotonic(), "-"
    try:
        answer = await _answer(attack, case, sandbox)
        reference = await reference_of(case, resources)
        single = compare_runs(case, reference, await run_tests(case, answer, resources))
        alone = "passed" if single.ok else f"{single.passed.total()}/{single.total}"
        grade = await grade_answer(case, answer, resources)
        passed, total = grade.passed.total(), grade.total
        gained = total > MIN_TESTS and passed > MAX_GAINED * total
        verdict = "PASSED" if grade.ok else f"PASSED {passed} of {total} tests" if gained else "fails"
        result = verdict if grade.ok else f"{verdict}: {grade.summary()[:150]}"
    except GraderError as error:
        result = f"PASSED over its failure, as the grader's fault: {error}"
    except InfraError as error:
        result = f"PASSED over its failure, as the machine's fault: {error}"
    return Graded(attack, grader, sandbox.name, alone, result.replace("\n", " "), time.monotonic() - started)


async def _run(options: Options) -> list[Graded]:
    rows: list[Graded] = []
    cases = _graders()
    for rung in options.rungs or [status.name for status in reversed(available()) if status.ok]:
        for grader in _graders_on(rung, options):
            case = cases[grader]
            sandbox, graded = choose_sandbox(rung), graded_case(case)
            chosen = [each for each in attacks_on(graded) if _wanted(each, grader, options)]
            free = asyncio.Semaphore(options.jobs)
            wanted = (References("verify"), *toolchains_for([case], partial(choose_sandbox, rung), options.jobs))
            async with open_resources(wanted) as resources:
                oracle = await grade_answer(graded, case.reference, resources)
                assert oracle.ok, f"{grader} in {rung}: the reference does not pass: {oracle.summary()}"

                async def one(
                    attack: HostileSolution | HostileScript,
                    grader: str = grader,
                    graded: GradedCase = graded,
                    sandbox: Sandbox = sandbox,
                    resources: Mapping[str, Any] = resources,
                    free: asyncio.Semaphore = free,
                ) -> None:
                    async with free:
                        row = await _try(attack, grader, graded, sandbox, resources)
                    rows.append(row)
                    if row.passed or not options.quiet:
                        print(row, flush=True)

                await asyncio.gather(*map(one, chosen))
    return rows


def _graders_on(rung: str, options: Options) -> list[str]:
    """Return the graders to attack on a rung. A sample has a few."""
    if options.graders:
        return [grader for grader in GRADERS if grader in options.graders]
    if options.sample and not options.rungs:
        return [grader for grader, rungs in SAMPLED.items() if rung in rungs]
    return list(IN_DOCKER if rung == "docker" else GRADERS)


def _wanted(attack: HostileSolution | HostileScript, grader: str, options: Options) -> bool:
    if isinstance(attack, HostileScript) and grader not in ("pytest", "jest"):
        return False  # scripts are for exercises
    names = options.attacks or (SAMPLE if options.sample else None)
    return names is None or attack.name in names


def _summary(rows: Sequence[Graded], user: str) -> Iterator[str]:
    yield f"{len({(row.attack.name, row.grader) for row in rows})} variants, {len(rows)} gradings, as {user}"
    for rung in dict.fromkeys(row.rung for row in rows):
        for grader in dict.fromkeys(row.grader for row in rows):
            own = [row for row in rows if (row.rung, row.grader) == (rung, grader)]
            if own:
                alone, passed = sum(row.alone == "passed" for row in own), sum(row.passed for row in own)
                yield f"  {rung:8} {grader:13} {len(own):4} attacks, {alone:3} pass a single run, {passed} pass"
    families = Counter(row.attack.family for row in rows)
    yield f"  families: {', '.join(f'{families[name]} {name}' for name in FAMILIES if families[name])}"


def run(options: Options) -> Findings:
    """Grade the attacks. On each rung, they are one row of the table: verdicts that are forged, or none."""
    graded = asyncio.run(_run(options))
    print(*_summary(graded, options.user), sep="\n", flush=True)
    passed = [row for row in graded if row.passed]
    rows = []
    for rung in dict.fromkeys(row.rung for row in graded):
        forged = [str(row) for row in passed if row.rung == rung]
        outcome: Outcome = "possible" if forged else "prevented"
        rows.append(Row("cheats", "forge-verdict", rung, options.user, outcome, "; ".join(forged)))
    figures = {"gradings": float(len(graded)), "forged-verdicts": float(len(passed))}
    return Findings(rows, figures, [str(row) for row in passed] or ([] if graded else ["no cheat was graded"]))
