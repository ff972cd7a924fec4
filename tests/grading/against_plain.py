"""Grade solutions with twins, and compare what counts as passed with the plain tools."""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bakeoff.engine.resources import open_resources
from bakeoff.grading.cases import toolchains_for
from bakeoff.grading.grades import PASSES_ANYHOW, Grade, compare_runs, run_answer
from bakeoff.grading.references import References, reference_of
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.install import install_jest, install_vitest, quiet

from .corpus import Solution
from .plain_tools import States, run_plain


@dataclass(frozen=True, slots=True)
class Compared:
    """A solution with its grade and with what the plain tool says about its tests."""

    solution: Solution
    grade: Grade
    plain: States

    @property
    def passes_plainly(self) -> bool:
        return "passed" in self.plain.values() and "failed" not in self.plain.values()

    @property
    def doubted(self) -> set[str]:
        """Return the tests of a wrong answer that fail here only because they pass whatever they expect."""
        if self.passes_plainly:
            return set()
        return {test.name for test in self.grade.run.tests if test.message == PASSES_ANYHOW}

    @property
    def difference(self) -> str | None:
        """Return which tests one passes and the other does not, or that only the verdicts differ.

        Tests of a wrong answer that pass whatever they expect are meant to differ: `doubted` has them.
        """
        plainly = {name for name, state in self.plain.items() if state == "passed"} - self.doubted
        ours = set(self.grade.passed)
        messages = {test.name: f"{test.state} {test.message[:200]}".strip() for test in self.grade.run.tests}
        differing = [f"{name}: {messages.get(name, 'it did not run')}" for name in sorted(plainly ^ ours)]
        if not differing and self.grade.ok == self.passes_plainly:
            return None
        return f"{self.solution} ({self.solution.kind}): {self.grade.summary()[:300]} | {'; '.join(differing)[:1500]}"


async def compare_with_plain(solutions: Sequence[Solution], at_once: int = 2) -> list[Compared]:
    """Grade solutions, several at a time, beside the plain tools."""
    toolchains = {"jest": await install_jest(quiet), "vitest": await install_vitest(quiet)}
    cases = list({each.case.name: each.case.case for each in solutions}.values())
    resources = (References("verify"), *toolchains_for(cases, lambda: choose_sandbox("auto"), at_once))
    gate = asyncio.Semaphore(at_once)
    async with open_resources(resources) as opened:

        async def grade(solution: Solution) -> Grade:
            async with gate:
                started = time.monotonic()
                reference = await reference_of(solution.case, opened)
                run = await run_answer(solution.case, reference, solution.files, opened)
                print(f"{time.monotonic() - started:6.1f} s  {solution}", file=sys.stderr, flush=True)
                return compare_runs(solution.case, reference, run)

        plain_runs = asyncio.create_task(asyncio.to_thread(run_plain, solutions, toolchains))
        grades = await asyncio.gather(*map(grade, solutions))
        plain = await plain_runs
    return [Compared(each, given, plain[str(each)]) for each, given in zip(solutions, grades, strict=True)]
