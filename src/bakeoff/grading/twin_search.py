"""Find the twins of a suite by trying perturbations on its reference, and prove halves of them."""

import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bakeoff._kernel.threads import both
from bakeoff.errors import InfraError
from bakeoff.grading.syntax import SyntaxEdit, with_edits
from bakeoff.grading.twins import FEW, Perturbation, Proposals, Twin, Twins
from bakeoff.grading.written_tests import TestSource
from bakeoff.toolchains.outcome import TestRun

RunReference = Callable[[Mapping[str, str]], Coroutine[Any, Any, TestRun]]
"""Run the reference with these test files in place of the suite's own."""

_MAX_ROUNDS = 16
_MAX_TIMEOUTS = 2  # another input may never end; finding out which one is not worth more waits
_SLOW_SECONDS = 0.5  # a twin that waits for something that never comes; another one may fail at once
_HALVES = 3
_FORMS, _FORMS_OF_FEW = 2, 4  # perturbations of a test; few tests need more of them to show something
_MAX_MENDINGS = 10
_OPEN, _CLOSE = "\u2039", "\u203a"
_NOTHING = Perturbation((), sound=False)


@dataclass(slots=True)
class _TwinSearch:
    """The search for the twins of one test."""

    index: int
    file: str
    source: TestSource
    untried: Iterator[Perturbation]
    places: list[int] = field(default_factory=list)
    found: list[Perturbation] = field(default_factory=list)
    slow: list[Perturbation] = field(default_factory=list)
    tried: Perturbation = _NOTHING

    @property
    def is_sound(self) -> bool:
        """Tell whether the first perturbation that was found is a sound one."""
        return bool(self.found) and self.found[0].sound

    def wants(self, forms: int) -> bool:
        """Tell whether to go on: until there is a sound perturbation, and so many in all."""
        return bool(self.places) and (not self.is_sound or len(self.found) < forms)

    def keep(self, seconds: float) -> None:
        """Keep what was tried, and made the tests so much slower. Further ones are kept only if they are sound.

        If one changed a query, say, an answer that makes every assertion pass would fail it, and look right.
        """
        if seconds >= _SLOW_SECONDS:
            self.slow.append(self.tried)
        elif self.tried.sound and not self.is_sound:
            self.found = [self.tried]
        elif self.tried.sound or not self.found:
            self.found.append(self.tried)

    def settle(self) -> None:
        """Take slow perturbations if nothing better was found."""
        if not self.is_sound:
            sound = [each for each in self.slow if each.sound]
            self.found = sound[:2] or self.found or self.slow[:1]

    def twins(self) -> Iterator[Twin]:
        """Yield the twins that were found: one for each row of a table, so that each row is perturbed by itself."""
        forms, rows = [each.edits for each in self.found], len(self.source.rows)
        if not forms:
            return
        first = Twin(
            file=self.file,
            sound=self.is_sound,
            flipped=self.found[0].flipped,
            made=self.found[0].made,
            edits=tuple(forms),
            tests=tuple(self.places),
        )
        if len(self.places) != rows or len(forms[0]) != rows:
            yield first
            return
        for row, place in enumerate(self.places):
            edits = tuple((form[row],) for form in forms if len(form) == rows)
            yield first.model_copy(update={"edits": edits, "tests": (place,)})


async def find_twins(files: Mapping[str, str], plain: TestRun, run: RunReference) -> Twins:
    """Return the twins of the tests in these files.

    Args:
        files: The test files of the suite, by path.
        plain: The run of the reference with these files as they are.
        run: Runs the reference with other test files.
    """
    draw = random.SystemRandom()
    proposals = Proposals(files, draw)
    searches = [
        _TwinSearch(index, name, test, proposals.candidates(test)) for index, (name, test) in enumerate(proposals.tests)
    ]
    if not searches:
        return Twins()
    await _locate(searches, files, plain, run)
    trial = _TwinTrials(files, plain, run)
    forms = _FORMS_OF_FEW if len(searches) < FEW else _FORMS
    for attempt in range(_MAX_ROUNDS):
        # Further perturbations are only looked for in the first rounds, while most tests still need one.
        wanted = forms if attempt < forms else 1
        open_searches = [search for search in searches if search.wants(wanted) and _next(search)]
        if not open_searches:
            break
        await trial.of(open_searches)
    for search in searches:
        search.settle()
    return await _prove(searches, files, plain, run, draw)


async def _locate(searches: Sequence[_TwinSearch], files: Mapping[str, str], plain: TestRun, run: RunReference) -> None:
    """Find out which tests of a run each test of the source becomes: by their names, or by marks in their titles."""
    counted = {place for place, test in enumerate(plain.tests) if test.state == "passed"}
    named = {search.source.name: search for search in searches if search.source.name is not None}
    if named:
        for place in sorted(counted):
            search = named.get(plain.tests[place].name.partition("[")[0]) or _inherited(named, plain.tests[place].name)
            if search is not None:
                search.places.append(place)
        return
    marks: dict[str, list[SyntaxEdit]] = {}
    for search in searches:
        if (at := search.source.title_at) is not None:
            marks.setdefault(search.file, []).append(SyntaxEdit(at, at, f"{_OPEN}{search.index}{_CLOSE}"))
    marked = await run({name: with_edits(files[name], edits) for name, edits in marks.items()})
    if len(marked.tests) != len(plain.tests):
        return
    untitled = [search for search in searches if search.source.title_at is None]
    for place in sorted(counted):
        _, found, rest = marked.tests[place].name.rpartition(_OPEN)
        if found:
            searches[int(rest.partition(_CLOSE)[0])].places.append(place)
        elif len(untitled) == 1:
            untitled[0].places.append(place)


def _inherited(named: Mapping[str, _TwinSearch], name: str) -> _TwinSearch | None:
    """Return the test of that name in another class, if there is just one: it was inherited."""
    last = name.partition("[")[0].rpartition(" > ")[2]
    fitting = [search for known, search in named.items() if known.rpartition(" > ")[2] == last]
    return fitting[0] if len(fitting) == 1 else None


def _next(search: _TwinSearch) -> bool:
    search.tried = next(search.untried, _NOTHING)
    return bool(search.tried.edits)


@dataclass(slots=True)
class _TwinTrials:
    """Try perturbations on the reference, those of many tests in one run."""

    files: Mapping[str, str]
    plain: TestRun
    run: RunReference
    timeouts: int = 0

    async def of(self, searches: Sequence[_TwinSearch]) -> None:
        """Run the reference with one perturbation of each test, and keep those that it fails."""
        edits: dict[str, list[SyntaxEdit]] = {}
        for search in searches:
            edits.setdefault(search.file, []).extend(search.tried.edits)
        found = await self.run({name: with_edits(self.files[name], each) for name, each in edits.items()})
        if _is_like(found, self.plain):
            for search in searches:
                failed = [place for place in search.places if found.tests[place].state == "failed"]
                if len(failed) == len(search.places):
                    search.keep(max(found.tests[place].seconds - self.plain.tests[place].seconds for place in failed))
            return
        self.timeouts += found.stop == "timeout"
        for part in _parts(searches):
            if self.timeouts <= _MAX_TIMEOUTS or all(search.tried.sound for search in part):
                await self.of(part)


def _is_like(found: TestRun, plain: TestRun) -> bool:
    """Tell whether the same tests ran to their end, and nothing went wrong outside of them."""
    return (
        len(found.tests) == len(plain.tests) and found.stop == "finished" and (found.error is None or bool(plain.error))
    )


def _parts(searches: Sequence[_TwinSearch]) -> list[list[_TwinSearch]]:
    """Part tests one of which broke the run: those with another input, which may never end, from the others."""
    given = [search for search in searches if not search.tried.sound]
    others = [search for search in searches if search.tried.sound]
    if given and others:
        return [others, given]
    middle = len(searches) // 2
    return [list(searches[:middle]), list(searches[middle:])] if middle else []


async def _prove(
    searches: Sequence[_TwinSearch], files: Mapping[str, str], plain: TestRun, run: RunReference, draw: random.Random
) -> Twins:
    """Draw halves, and check on the reference that in each every true test passes and every twin fails.

    A twin that makes another test fail, because it ends before it cleans up, is left out.
    """
    usable = [twin for search in searches for twin in search.twins()]
    was_broken = False
    for _ in range(_MAX_MENDINGS):
        if not usable:
            break
        halves = tuple(_half(len(usable), draw) for _ in range(_HALVES))
        twins = Twins(twins=tuple(usable), halves=halves)
        unfit, is_broken = await _unfit(twins, files, plain, run)
        if not unfit:
            return twins
        was_broken |= is_broken
        usable = [twin for index, twin in enumerate(usable) if index not in unfit]
    if not usable and not was_broken:
        return Twins()  # each of the tests, when it fails, makes others fail
    raise InfraError(
        "no half of the tests could be perturbed so that the reference passes the other half; "
        "tests that depend on time do that, and so does a busy machine"
    )


async def _unfit(twins: Twins, files: Mapping[str, str], plain: TestRun, run: RunReference) -> tuple[set[int], bool]:
    """Return the twins that the reference passes or that stand before a true test that fails, or that break the run.

    The second value is true if they break it.
    """
    forms = _FORMS_OF_FEW if len(twins.twins) < FEW else 1
    for number, half in enumerate(twins.halves * forms):
        form = dict.fromkeys(range(len(twins.twins)), number // len(twins.halves))
        halves = (half, twins.complement(half))
        runs = await both(*(run(twins.perturb(files, each, form)) for each in halves))
        for perturbed, found in zip(halves, runs, strict=True):
            if not _is_like(found, plain):
                return await _breaking(twins, sorted(perturbed), files, plain, run), True
            unfit = set[int]()
            wrong = {place for index in perturbed for place in twins.twins[index].tests}
            for place, (test, known) in enumerate(zip(found.tests, plain.tests, strict=True)):
                if place in wrong and test.state != "failed":
                    unfit |= {index for index in perturbed if place in twins.twins[index].tests}
                elif place not in wrong and test.state != known.state:
                    unfit |= _nearest(twins, perturbed, place)
            if unfit:
                return unfit, False
    return set(), False


async def _breaking(
    twins: Twins, perturbed: Sequence[int], files: Mapping[str, str], plain: TestRun, run: RunReference
) -> set[int]:
    """Return one of these twins, which break the run together, that breaks it with as few others as possible."""
    while len(perturbed) > 1:
        middle = len(perturbed) // 2
        first = await run(twins.perturb(files, perturbed[:middle]))
        perturbed = perturbed[:middle] if not _is_like(first, plain) else perturbed[middle:]
    return set(perturbed)


def _nearest(twins: Twins, perturbed: frozenset[int], place: int) -> set[int]:
    """Return the perturbed test that ran last before a place, or else the first after it."""
    before = [index for index in perturbed if twins.twins[index].tests[-1] < place]
    after = [index for index in perturbed if twins.twins[index].tests[0] > place]
    return {max(before, key=lambda index: twins.twins[index].tests)} if before else set(after[:1])


def _half(count: int, draw: random.Random) -> frozenset[int]:
    return frozenset(draw.sample(range(count), (count + draw.randrange(2)) // 2))
