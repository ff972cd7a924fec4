"""Run the tests of an answer together with their twins, and grade it against the reference."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from pydantic import JsonValue

from bakeoff._kernel.clock import CLOCK
from bakeoff._kernel.text import count_of, shorten
from bakeoff.grading.cases import GradedCase, run_tests, run_validator, type_errors
from bakeoff.grading.references import ReferenceRun, always_skipped, reference_of
from bakeoff.grading.twins import FEW, Twin, Twins
from bakeoff.record import BROKEN, PROVEN_TESTS, TEST_SHARES, TESTS, ProvenTests, TestResult, TestShares
from bakeoff.toolchains.outcome import TestOutcome, TestRun, ValidationOutcome

RunAnswer = Callable[[Mapping[str, str]], Coroutine[Any, Any, TestRun]]
"""Run an answer with these test files in place of the suite's own."""

PASSES_ANYHOW = "it passes whatever is expected: its twin, which a right answer fails, passed too"
_UNTRUSTED = "nothing shows that it can fail, and the answer is not trusted"
_ACCIDENTS = 0.1
"""The share of the tests that may have strange results by accident. A single one is always accepted."""
_NAMED = 5  # tests that a message names


class _BrokenError(Exception):
    """Raised with a test run that did not finish."""

    def __init__(self, run: TestRun) -> None:
        super().__init__(run.error)
        self.run = run


class _TwinPair(NamedTuple):
    """The results of two complementary runs. Tests are identified by their positions."""

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
        """Return the tests that failed while their twins passed. Forgeries have many of these."""
        return self.twins_passed - self.doubted


async def run_with_twins(
    names: Sequence[str],
    twins: Twins,
    files: Mapping[str, str],
    run: RunAnswer,
    run_shortly: RunAnswer | None = None,
) -> TestRun:
    """Run the tests on an answer in pairs of runs, and return the combined result.

    Args:
        names: The names of the tests, in the order of the reference's run.
        twins: The twins of the tests. Without twins, the unchanged tests run once.
        files: The test files.
        run: Runs the answer with other test files.
        run_shortly: Does the same with a shorter limit, for repeating a run that did not end.
    """
    if not twins.twins:
        return await run({})
    try:
        return await _TwinGrading(names, twins, files, run, run_shortly or run).grade()
    except _BrokenError as broken:
        # Remove the messages: they may come from twins, and would mislead the reader.
        tests = tuple(test.model_copy(update={"message": ""}) for test in broken.run.tests)
        return broken.run.model_copy(update={"tests": tests})


@dataclass(slots=True)
class _TwinGrading:
    """Grades one answer."""

    names: Sequence[str]
    twins: Twins
    files: Mapping[str, str]
    run: RunAnswer
    run_shortly: RunAnswer
    pairs: list[_TwinPair] = field(default_factory=list)
    halves: list[int] = field(default_factory=list)
    """The numbers of the remaining halves, in a random order that nobody knows."""
    seconds: float = 0.0

    async def grade(self) -> TestRun:
        while len(self.pairs) * len(self.twins.twins) < FEW:
            await self._add_pair()
        doubted = frozenset(place for pair in self.pairs for place in pair.doubted)
        suspects = [twin for twin in self.twins.twins if not doubted.isdisjoint(twin.tests)]
        if [twin.change for twin in suspects] in (["part"], ["input"]):
            # Right answers fail any other value. Use a new form, which the answer cannot know.
            self._take_other_form_next(suspects[0])
            again = await self._add_pair()
            doubted = again.doubted | (doubted - again.perturbed)
        if any(self._too_many(pair.inverted) for pair in self.pairs):
            # Forged or guessed results do not repeat with other forms of the twins.
            doubted |= (await self._add_pair()).doubted
        tests = tuple(self._combined(doubted))
        error = next((pair.error for pair in self.pairs if pair.error), None)
        return TestRun(tests=tests, error=error, seconds=self.seconds, tampered=self._tampered(doubted))

    def _take_other_form_next(self, twin: Twin) -> None:
        """If possible, use next a half in which this twin has a form that was not used yet."""
        forms = [twin.edits[half % len(twin.edits)] for half in range(len(self.twins.halves))]
        shown = [form for half, form in enumerate(forms) if half not in self.halves]
        self.halves.sort(key=lambda half: forms[half] not in shown)

    def _too_many(self, strange: Collection[int]) -> bool:
        return len(strange) > max(1, _ACCIDENTS * len(self.twins.places()))

    async def _add_pair(self, *, spared: frozenset[int] | None = None) -> _TwinPair:
        """Run the tests twice: once with a random half of the twins, once with the other half.

        The runs do not overlap in time, so that they cannot exchange what they see. The `spared`
        twins, which may have caused a timeout, are used in neither run.
        """
        if not self.halves:
            self.halves = random.SystemRandom().sample(range(len(self.twins.halves)), len(self.twins.halves))
        half = self.twins.halves[self.halves[-1]]
        form = self.halves[-1] if len(self.pairs) < len(self.twins.halves) else len(self.pairs)
        halves = [each - (spared or frozenset()) for each in (half, self.twins.complement(half))]
        random.SystemRandom().shuffle(halves)
        run = self.run if spared is None else self.run_shortly
        runs = [await run(self.twins.perturb(self.files, each, form)) for each in halves]
        self.seconds += sum(each.seconds for each in runs)
        broken = [each for each in runs if not self._is_complete(each)]
        if len(broken) == 1 and spared is None and broken[0].stop in ("timeout", "memory"):
            # A twin with another input may never end. Repeat without such twins in this run, but keep the
            # form and the other run's twins, so that an answer can neither learn nor avoid them.
            suspects = halves[runs.index(broken[0])]
            inputs = frozenset(each for each in suspects if self.twins.twins[each].change == "input")
            return await self._add_pair(spared=inputs)
        self.halves.pop()
        if broken:
            raise _BrokenError(broken[0].model_copy(update={"seconds": self.seconds}))
        first, second = ({place for index in half for place in self.twins.twins[index].tests} for half in halves)
        tests, passed = list[TestOutcome](), set[int]()
        for place, both_forms in enumerate(zip(runs[0].tests, runs[1].tests, strict=True)):
            true, other = both_forms if place not in first else reversed(both_forms)
            if place not in first | second and true.state == "passed":
                true = other  # both runs had the true test, and both must pass
            elif other.state == "passed":
                passed.add(place)
            tests.append(true)
        perturbed = frozenset(first | second)
        self.pairs.append(_TwinPair(tests, frozenset(passed) & perturbed, perturbed, await self._error(runs)))
        return self.pairs[-1]

    def _is_complete(self, run: TestRun) -> bool:
        return run.stop == "finished" and run.tampered is None and len(run.tests) == len(self.names)

    async def _error(self, runs: Sequence[TestRun]) -> str | None:
        """Return errors outside of the tests. If only one run has an error, check without twins."""
        errors = [run.error for run in runs if run.error]
        if len(errors) != 1:
            return errors[0] if errors else None
        plain = await self.run({})
        self.seconds += plain.seconds
        if not self._is_complete(plain):
            raise _BrokenError(plain.model_copy(update={"seconds": self.seconds}))
        return plain.error

    def _tampered(self, doubted: frozenset[int]) -> str | None:
        if len(doubted & self.twins.places("value", "negation")) > 1 or (doubted and len(self.twins.places()) == 1):
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
        left_out = self.twins.places() - proven  # not perturbed after a timeout, which an answer may have caused
        untrusted = bool(doubted) or not proven or self._too_many(left_out)
        for place, name in enumerate(self.names):
            shown = [pair.tests[place] for pair in self.pairs]
            test = next((each for each in shown if each.state != "passed"), shown[0])
            if test.state == "passed" and place in doubted:
                test = TestOutcome(name=name, state="failed", message=PASSES_ANYHOW)
            elif test.state == "passed" and place not in proven and untrusted:
                test = TestOutcome(name=name, state="failed", message=_UNTRUSTED)
            yield test.model_copy(update={"name": name})


_ENDINGS = {
    "timeout": "the tests did not end within {seconds:g} s",
    "crashed": "the process that ran the tests ended before they did",
    "memory": "the tests used more memory than allowed",
    "output": "the tests wrote more output than allowed",
}
_NAME, _MESSAGE = 300, 2000  # longest kept name and message of a test
_TESTS = 300  # how many tests are kept
_AFTER_TIMEOUT = 0.5  # share of the limit for a run after a timeout
_NO_RUN = TestRun()
_NOTHING_PROVEN = ProvenTests(proven=0, total=0)


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of one answer."""

    passed: Counter[str]
    """Names of the tests that count and passed."""
    failed: Counter[str]
    """Names of the tests that count and did not pass."""
    problem: str | None = None
    """The reason why none of the reported tests counts."""
    error: str | None = None
    """The error outside of the tests. It fails the answer, and the tests still count."""
    run: TestRun = _NO_RUN
    validation: ValidationOutcome | None = None
    hidden: Counter[str] = field(default_factory=Counter)
    """Names of the tests that count and that the subject did not see."""
    unproven: tuple[str, ...] = ()
    """Names of the tests that count and are not proven: an answer that agrees with everything may pass them."""
    broken: tuple[str, ...] = ()
    """Names of the tests that the reference fails, too."""
    proven: ProvenTests = _NOTHING_PROVEN

    @property
    def shares(self) -> TestShares | None:
        """Return how many visible and hidden tests passed; None if no tests are hidden."""
        if not self.hidden:
            return None
        hidden = (self.passed & self.hidden).total()
        return TestShares(
            visible_passed=self.passed.total() - hidden,
            visible_total=self.total - self.hidden.total(),
            hidden_passed=hidden,
            hidden_total=self.hidden.total(),
        )

    @property
    def total(self) -> int:
        """Return the number of counted tests."""
        return self.passed.total() + self.failed.total()

    @property
    def refused(self) -> bool:
        """Return True if the validator refused the answer."""
        return self.validation is not None and not self.validation.valid

    @property
    def ok(self) -> bool:
        """Return True if at least one test counts, all passed, and there is no other problem."""
        faultless = self.problem is None and self.error is None and not self.refused
        return faultless and bool(self.passed) and not self.failed

    def summary(self) -> str:
        """Return the grade in one line."""
        counts = f"{self.passed.total()} of {count_of(self.total, 'test')} passed"
        notes = [first_line(text) for text in (self.problem, self.error) if text]
        if self.refused and self.validation is not None:
            notes.append(f"the validator objects: {'; '.join(self.validation.errors) or 'it gives no reason'}")
        if not notes and (named := [test.name for test in self.run.tests if test.name in self.failed]):
            notes.append(f"failed: {', '.join(dict.fromkeys(named))}")
        if self.broken:
            notes.append(f"the suite is unfit: its reference fails {len(self.broken)} of its tests")
        if self.unproven and self.passed:
            notes.append(str(self.proven))
        return shorten("; ".join([counts, *notes]), 1000)


async def grade_answer(case: GradedCase, answer: Mapping[str, str], resources: Mapping[str, Any]) -> Grade:
    """Run the validator and the tests on an answer, and compare the result with the reference.

    Each run has its own time limit, and the scoring clock is paused meanwhile, so that a slow
    answer fails by itself instead of ending its scoring.
    """
    reference = await reference_of(case, resources)
    skipped = frozenset[str]() if reference else await always_skipped(case, resources)
    # An answer is not held to types that the reference itself gets wrong, by settings or packages that are not here.
    typed = reference is None or reference.type_errors is None
    clock = CLOCK.get(None)
    with clock.paused() if clock else nullcontext():
        validation = await run_validator(case, answer, resources)
        run = await run_answer(case, reference, answer, resources)
        grade = compare_runs(case, reference, run, validation, skipped=skipped)
        # Last, since it reads all true forms, and types of an answer can choose how long that takes.
        types = await type_errors(case, answer, resources) if typed and grade.ok else None
    return grade if types is None else compare_runs(case, reference, run, validation, skipped=skipped, types=types)


async def run_answer(
    case: GradedCase, reference: ReferenceRun | None, answer: Mapping[str, str], resources: Mapping[str, Any]
) -> TestRun:
    """Run the tests on an answer, with twins if there are any.

    A command has to pass with the tests as they are, and our own runner with their twins. The command runs last: it
    shows an answer which forms are true, and the answer could tell that to later runs.
    """
    if reference is None:
        return await run_tests(case, answer, resources)
    confirming = reference.confirming
    if confirming is None:
        return await _run_with_twins(case, reference, answer, resources)
    own = compare_runs(case, confirming, await _run_with_twins(case, confirming, answer, resources, confirm=True))
    run = await run_tests(case, answer, resources)
    return run if own.ok or not run.ok else run.model_copy(update={"unconfirmed": own.problem or own.summary()})


async def _run_with_twins(
    case: GradedCase,
    reference: ReferenceRun,
    answer: Mapping[str, str],
    resources: Mapping[str, Any],
    *,
    confirm: bool = False,
) -> TestRun:
    def run(share: float, tests: Mapping[str, str]) -> Coroutine[Any, Any, TestRun]:
        return run_tests(case, answer, resources, tests, seconds=share * case.settings.seconds, confirm=confirm)

    return await run_with_twins(
        reference.names, reference.twins, case.test_files, partial(run, 1.0), partial(run, _AFTER_TIMEOUT)
    )


async def grade_nothing(case: GradedCase, why: str, resources: Mapping[str, Any]) -> Grade:
    """Return the grade for an empty submission, which fails every test.

    The validator is still run on the reference: if it is broken, the suite must not count for any
    subject, so that all subjects are measured by the same tests.
    """
    reference = await reference_of(case, resources)
    await run_validator(case, case.reference, resources)
    if reference is None:
        return Grade(Counter(), Counter(), problem=why)
    failed, known = Counter(reference.counted), reference.proven_tests
    return Grade(Counter(), failed, why, hidden=reference.hidden, unproven=reference.unproven, proven=known)


def compare_runs(
    case: GradedCase,
    reference: ReferenceRun | None,
    run: TestRun,
    validation: ValidationOutcome | None = None,
    *,
    skipped: Collection[str] = (),
    types: str | None = None,
) -> Grade:
    """Return the grade for a test run.

    An answer passes if the validator accepts it, and exactly the reference's tests ran and passed.

    Args:
        case: The case.
        reference: The run of the reference. Without it, all tests count except `skipped`.
        run: The run of the answer, with or without twins.
        validation: The validator's result, if there is a validator.
        skipped: Tests that are always skipped.
        types: The type errors of the answer, which make it fail.
    """
    problem = _problem(case, reference, run)
    wanted = Counter(reference.counted if reference else [test.name for test in run.tests if test.name not in skipped])
    trusted = run.tests if problem is None else ()
    passed = wanted & Counter(test.name for test in trusted if test.state == "passed")
    error = (run.error if problem is None else None) or types
    hidden = reference.hidden if reference else Counter[str]()
    unproven = reference.unproven if reference else tuple(wanted.elements())
    broken = reference.broken if reference else ()
    proven = reference.proven_tests if reference else ProvenTests(proven=0, total=wanted.total())
    return Grade(passed, wanted - passed, problem, error, run, validation, hidden, unproven, broken, proven)


def _problem(case: GradedCase, reference: ReferenceRun | None, run: TestRun) -> str | None:
    """Return why none of the reported tests counts, or None."""
    if run.tampered is not None:
        return f"the answer interfered with the tests: {run.tampered}"
    if run.stop in _ENDINGS:
        return run.error or _ENDINGS[run.stop].format(seconds=case.settings.seconds)
    wanted, seen = Counter(reference.names if reference else ()), Counter(test.name for test in run.tests)
    others = reference is not None and wanted != seen
    if run.error is not None and (others or case.is_exercise):
        return run.error
    if others:
        listed = [
            f"{what} {', '.join(list(names)[:_NAMED])}"
            for what, names in (("missing:", wanted - seen), ("unknown:", seen - wanted))
            if names
        ]
        return f"the tests that ran are not those of the reference ({'; '.join(listed)})"
    if run.unconfirmed is not None:
        return f"the command says that the tests pass, but run apart from it they do not: {run.unconfirmed}"
    return None


def test_results(grade: Grade) -> list[TestResult]:
    """Return the counted tests with their messages, failed tests first."""
    left, hidden = grade.passed.copy(), grade.hidden.copy()
    messages = {test.name: test.message or "" for test in grade.run.tests if test.state != "passed"}
    order = [*(test.name for test in grade.run.tests), *grade.passed.elements(), *grade.failed.elements()]
    wanted, results = grade.passed + grade.failed, list[TestResult]()
    for name in order:
        if not wanted[name]:
            continue
        wanted[name] -= 1
        passed = left[name] > 0
        left[name] -= passed
        hidden[name] -= (is_hidden := hidden[name] > 0)
        message = "" if passed else shorten(messages.get(name, ""), _MESSAGE)
        results.append(TestResult(name=shorten(name, _NAME), passed=passed, message=message, hidden=is_hidden))
    return sorted(results, key=lambda test: test.passed)[:_TESTS]


def share_metadata(grade: Grade) -> dict[str, JsonValue]:
    """Return metadata for a score: all tests, visible and hidden shares, number of proven tests."""
    shares = grade.shares
    kept: dict[str, JsonValue] = {TEST_SHARES: shares.model_dump(mode="json")} if shares else {}
    if tests := test_results(grade):
        kept[TESTS] = [test.model_dump(mode="json", exclude_defaults=True) for test in tests]
    if grade.broken:
        kept[BROKEN] = list(grade.broken)
    if grade.proven.total:
        kept[PROVEN_TESTS] = grade.proven.model_dump()
    return {**kept, "tests_unproven": list(grade.unproven)} if grade.unproven else kept


def first_line(text: str) -> str:
    """Return the first line that is not blank, or the whole text if there is none."""
    return next((line for line in text.splitlines() if line.strip()), text)
