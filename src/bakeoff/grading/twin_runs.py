"""Run the tests of an answer together with their twins, and decide what was shown."""

import random
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bakeoff._kernel.threads import both
from bakeoff.grading.twins import FEW, Twins
from bakeoff.toolchains.outcome import TestOutcome, TestRun

RunAnswer = Callable[[Mapping[str, str]], Coroutine[Any, Any, TestRun]]
"""Run an answer with these test files in place of the suite's own."""

PASSES_ANYHOW = "it passes whatever is expected: its twin, which a right answer fails, passed too"
_UNTRUSTED = "nothing shows that it can fail, and the answer is not trusted"
_ACCIDENTS = 0.1
"""One strange result, or this share of the tests, may be an accident. More of them are none."""
_NAMED = 5


class _BrokenError(Exception):
    """Carry a run that did not get to its end."""

    def __init__(self, run: TestRun) -> None:
        super().__init__(run.error)
        self.run = run


class _TwinPair(NamedTuple):
    """Hold the results of two complementary runs, by the places of the tests."""

    tests: list[TestOutcome]
    twins_passed: frozenset[int]
    perturbed: frozenset[int]
    error: str | None

    @property
    def doubted(self) -> frozenset[int]:
        """Return the tests that passed together with their twins."""
        return frozenset(place for place in self.twins_passed if self.tests[place].state == "passed")

    @property
    def inverted(self) -> frozenset[int]:
        """Return the tests that failed while their twins passed. Wrong answers have few of them, forgeries half."""
        return self.twins_passed - self.doubted


async def run_with_twins(
    names: Sequence[str],
    twins: Twins,
    files: Mapping[str, str],
    run: RunAnswer,
    run_shortly: RunAnswer | None = None,
) -> TestRun:
    """Run the tests on an answer in pairs of runs, and return what they show together.

    Args:
        names: The names of the tests, in the order in which the reference ran them.
        twins: The twins of the tests. Without any, the tests run once, as they are.
        files: The test files.
        run: Runs the answer with other test files.
        run_shortly: Does so in less time, after a run that did not end: no answer must take twice its limit.
    """
    if not twins.twins:
        return await run({})
    try:
        return await _TwinGrading(names, twins, files, run, run_shortly or run).grade()
    except _BrokenError as broken:
        # Its messages may be those of twins, and nobody must look for a fault that a twin made up.
        tests = tuple(test.model_copy(update={"message": ""}) for test in broken.run.tests)
        return broken.run.model_copy(update={"tests": tests})


@dataclass(slots=True)
class _TwinGrading:
    """Grade one answer."""

    names: Sequence[str]
    twins: Twins
    files: Mapping[str, str]
    run: RunAnswer
    run_shortly: RunAnswer
    pairs: list[_TwinPair] = field(default_factory=list)
    halves: list[frozenset[int]] = field(default_factory=list)
    seconds: float = 0.0

    async def grade(self) -> TestRun:
        while len(self.pairs) * len(self.twins.twins) < FEW:
            await self._add_pair(dict.fromkeys(range(len(self.twins.twins)), len(self.pairs)))
        doubted = frozenset(place for pair in self.pairs for place in pair.doubted)
        second = {index: 1 for index, twin in enumerate(self.twins.twins) if doubted & set(twin.tests)}
        if len(second) == 1:
            doubted = (await self._add_pair(second)).doubted
        if any(self._too_many(pair.inverted) for pair in self.pairs):
            # Whoever forges results, or guesses, does not give the same ones for other forms of the twins.
            doubted |= (await self._add_pair(dict.fromkeys(range(len(self.twins.twins)), 1))).doubted
        tests = tuple(self._combined(doubted))
        error = next((pair.error for pair in self.pairs if pair.error), None)
        return TestRun(tests=tests, error=error, seconds=self.seconds, tampered=self._tampered(doubted))

    def _too_many(self, strange: Collection[int]) -> bool:
        return len(strange) > max(1, _ACCIDENTS * len(self.twins.proven))

    async def _add_pair(self, forms: Mapping[int, int], *, only_sound: bool = False) -> _TwinPair:
        """Run the tests twice, with the next half of the twins and with the others. `forms` are those of the twins."""
        if not self.halves:
            self.halves = random.SystemRandom().sample(self.twins.halves, len(self.twins.halves))
        half = self.halves[-1]
        halves = [half, self.twins.complement(half)]
        if only_sound:
            halves = [frozenset(index for index in each if self.twins.twins[index].sound) for each in halves]
        run = self.run_shortly if only_sound else self.run
        runs = await both(*(run(self.twins.perturb(self.files, each, forms)) for each in halves))
        self.seconds += sum(each.seconds for each in runs)
        broken = [each for each in runs if not self._is_complete(each)]
        if len(broken) == 1 and not only_sound and broken[0].stop in ("timeout", "memory") and self.twins.mostly_sound:
            # A twin with another input may never end. It gets no new form: an answer that told new forms from old
            # ones would know the twins.
            return await self._add_pair(forms, only_sound=True)
        self.halves.pop()
        if broken:
            raise _BrokenError(broken[0].model_copy(update={"seconds": self.seconds}))
        self.pairs.append(self._read_pair(halves, runs, await self._error(runs)))
        return self.pairs[-1]

    def _is_complete(self, run: TestRun) -> bool:
        return run.stop == "finished" and run.tampered is None and len(run.tests) == len(self.names)

    async def _error(self, runs: Sequence[TestRun]) -> str | None:
        """Return what went wrong outside of the tests. If it is so in one run only, a twin may be the reason."""
        errors = [run.error for run in runs if run.error]
        if len(errors) != 1:
            return errors[0] if errors else None
        plain = await self.run({})
        self.seconds += plain.seconds
        if not self._is_complete(plain):
            raise _BrokenError(plain.model_copy(update={"seconds": self.seconds}))
        return plain.error

    def _read_pair(self, halves: Sequence[Collection[int]], runs: Sequence[TestRun], error: str | None) -> _TwinPair:
        first, second = ({place for index in half for place in self.twins.twins[index].tests} for half in halves)
        tests, passed = list[TestOutcome](), set[int]()
        for place, forms in enumerate(zip(runs[0].tests, runs[1].tests, strict=True)):
            true, other = forms if place not in first else reversed(forms)
            if place not in first | second and true.state == "passed":
                true = other  # both are true forms, and both must pass
            elif other.state == "passed":
                passed.add(place)
            tests.append(true)
        perturbed = frozenset(first | second)
        return _TwinPair(tests, frozenset(passed) & perturbed, perturbed, error)

    def _tampered(self, doubted: frozenset[int]) -> str | None:
        sound = sorted(doubted & self.twins.sound)
        if len(sound) > 1 or (doubted and len(self.twins.proven) == 1):
            return f"tests pass whatever they expect: {self._listed(sorted(doubted))}"
        fickle = [
            place
            for place in range(len(self.names))
            if len({pair.tests[place].state == "passed" for pair in self.pairs}) > 1
        ]
        if self._too_many(fickle):
            return f"tests pass in one run and fail in another: {self._listed(fickle)}"
        return None

    def _listed(self, places: Sequence[int]) -> str:
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        return f"{', '.join(self.names[place] for place in places[:_NAMED])}{more}"

    def _combined(self, doubted: Collection[int]) -> Iterator[TestOutcome]:
        proven = frozenset(place for pair in self.pairs for place in pair.perturbed)
        left_out = self.twins.proven - proven  # of a run that did not end; an answer may have seen to that
        for place, name in enumerate(self.names):
            shown = [pair.tests[place] for pair in self.pairs]
            test = next((each for each in shown if each.state != "passed"), shown[0])
            if test.state == "passed" and place in doubted:
                test = TestOutcome(name=name, state="failed", message=PASSES_ANYHOW)
            elif test.state == "passed" and place not in proven and (doubted or self._too_many(left_out)):
                test = TestOutcome(name=name, state="failed", message=_UNTRUSTED)
            yield test.model_copy(update={"name": name})
