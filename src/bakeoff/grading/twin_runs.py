"""Run the tests of an answer together with their twins, and decide what was shown."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from bakeoff.grading.twins import Twins
from bakeoff.toolchains.outcome import TestOutcome, TestRun

RunAnswer = Callable[[Mapping[str, str]], Awaitable[TestRun]]
"""Run an answer with these test files in place of the suite's own."""

PASSES_ANYHOW = "it passes whatever is expected: its twin, which a right answer fails, passed too"
_UNTRUSTED = "nothing shows that it can fail, and other tests pass whatever is expected"
_DOUBTED_SHARE = 0.1
"""More doubts than one, and than this share of the tests, are no accident, and get no second try."""
FEW = 4
"""A suite with fewer twins than this is run in several pairs: with one pair, a guess would be right too often."""
_NAMED = 5


class _Pair(NamedTuple):
    """Hold the results of two complementary runs, by the places of the tests."""

    tests: list[TestOutcome]
    twins_passed: frozenset[int]
    error: str | None
    seconds: float

    @property
    def doubted(self) -> frozenset[int]:
        """Return the tests that passed together with their twins."""
        return frozenset(place for place in self.twins_passed if self.tests[place].state == "passed")


async def run_with_twins(names: Sequence[str], twins: Twins, files: Mapping[str, str], run: RunAnswer) -> TestRun:
    """Run the tests on an answer in pairs of runs, and return what they show together.

    Args:
        names: The names of the tests, in the order in which the reference ran them.
        twins: The twins of the tests. Without any, the tests run once, as they are.
        files: The test files.
        run: Runs the answer with other test files.
    """
    if not twins.twins:
        return await run({})

    async def run_pair(half: frozenset[int], attempt: int = 0, *, sound_only: bool = False) -> _Pair | TestRun:
        halves = [half, twins.complement(half)]
        if sound_only:
            halves = [frozenset(index for index in each if twins.twins[index].sound) for each in halves]
        runs = await asyncio.gather(*(run(twins.perturb(files, each, attempt)) for each in halves))
        broken = [each for each in runs if not _is_complete(each, names)]
        if len(broken) == 1 and not sound_only and twins.mostly_sound:
            # A twin with another input may never end. It gets no new form: an answer could tell that from those it saw.
            return await run_pair(half, attempt, sound_only=True)
        seconds = sum(each.seconds for each in runs)
        return broken[0].model_copy(update={"seconds": seconds}) if broken else _read_pair(twins, halves, runs)

    pairs: list[_Pair] = []
    while len(pairs) * len(twins.twins) < FEW:
        pair = await run_pair(secrets.choice(twins.halves))
        if isinstance(pair, TestRun):
            return pair
        pairs.append(pair)
    doubted = frozenset(place for pair in pairs for place in pair.doubted)
    if 0 < len(doubted) <= max(1, _DOUBTED_SHARE * len(twins.proven)):
        again = await run_pair(_random_half(twins), attempt=1)
        if isinstance(again, TestRun):
            return again
        pairs.append(again)
        doubted = again.doubted
    return _combine(names, twins, pairs, doubted)


def _is_complete(run: TestRun, names: Sequence[str]) -> bool:
    return run.stop == "finished" and run.tampered is None and len(run.tests) == len(names)


def _read_pair(twins: Twins, halves: Sequence[Collection[int]], runs: Sequence[TestRun]) -> _Pair:
    first, second = ({place for index in half for place in twins.twins[index].tests} for half in halves)
    tests, passed = list[TestOutcome](), set[int]()
    for place, both in enumerate(zip(runs[0].tests, runs[1].tests, strict=True)):
        true, other = both if place not in first else reversed(both)
        if place not in first | second and true.state == "passed":
            true = other  # both are true forms, and both must pass
        elif other.state == "passed":
            passed.add(place)
        tests.append(true)
    error = next((run.error for run in runs if run.error), None)
    return _Pair(tests, frozenset(passed), error, sum(run.seconds for run in runs))


def _random_half(twins: Twins) -> frozenset[int]:
    """Return a half that was not drawn before, so that doubted tests do not stand out by being perturbed together."""
    return frozenset(index for index in range(len(twins.twins)) if secrets.randbelow(2))


def _combine(names: Sequence[str], twins: Twins, pairs: Sequence[_Pair], doubted: Collection[int]) -> TestRun:
    tests = tuple(_combined(names, twins, pairs, doubted))
    passes_anyhow = [names[place] for place in sorted(doubted)]
    tampered = None
    if len(passes_anyhow) > 1 or (passes_anyhow and len(twins.proven) == 1):
        more = f" and {len(passes_anyhow) - _NAMED} more" if len(passes_anyhow) > _NAMED else ""
        tampered = f"tests pass whatever they expect: {', '.join(passes_anyhow[:_NAMED])}{more}"
    return TestRun(
        tests=tests,
        error=next((pair.error for pair in pairs if pair.error), None),
        seconds=sum(pair.seconds for pair in pairs),
        tampered=tampered,
    )


def _combined(
    names: Sequence[str], twins: Twins, pairs: Sequence[_Pair], doubted: Collection[int]
) -> Iterator[TestOutcome]:
    for place, name in enumerate(names):
        shown = [pair.tests[place] for pair in pairs]
        test = next((each for each in shown if each.state != "passed"), shown[0])
        if test.state == "passed" and place in doubted:
            test = TestOutcome(name=name, state="failed", message=PASSES_ANYHOW)
        elif test.state == "passed" and doubted and place not in twins.proven:
            test = TestOutcome(name=name, state="failed", message=_UNTRUSTED)
        yield test.model_copy(update={"name": name})
