"""Attackers that read test files: one that has both files of a grading, and one that copies what its file expects."""

import random
import re
from collections.abc import Mapping

import pytest
from bench.both_files import STRUCTURE, follow_graph, judge, synthetic

from bakeoff.grading.grades import run_with_twins
from bakeoff.grading.twins import Proposals, Twin, Twins, find_twins
from bakeoff.toolchains.outcome import TestOutcome, TestRun

SUITES = [synthetic(number) for number in range(60)]


def test_the_graph_of_values_orients_tests_no_better_than_a_coin() -> None:
    found = [right for suite in SUITES for right in follow_graph(suite)]
    assert 0.4 < sum(found) / len(found) < 0.6


@pytest.mark.full
def test_frequencies_types_lengths_and_magnitudes_orient_tests_no_better_than_a_coin() -> None:
    judged = judge(SUITES, STRUCTURE)
    found = [right for _, each in judged for right in each]
    assert 0.4 < sum(found) / len(found) < 0.6
    assert sum(all(each) for _, each in judged) <= 3


async def test_runs_that_share_all_they_see_guess_each_pair_of_values() -> None:
    """The second run knows what the first saw and said, as it would through locks on a shared file."""
    text = "\n\n".join(f"def test_{n}():\n    assert f({n}) == {7 * n + 11}\n" for n in range(12))
    proposals, names = Proposals({"a.py": text}, random.Random(1)), [f"test_{n}" for n in range(12)]
    edits = [next(proposals.candidates(test)).edits for _, test in proposals.tests]
    twins = Twins(
        twins=tuple(Twin(file="a.py", edits=(each,), tests=(at,)) for at, each in enumerate(edits)),
        halves=(frozenset(range(0, 12, 2)), frozenset((0, 1, 2, 6, 7, 8)), frozenset(range(5))),
    )
    passed = 0
    for number in range(200):
        draw, believed = random.Random(number), dict[tuple[int, str], bool]()

        async def forge(
            files: Mapping[str, str],
            draw: random.Random = draw,
            believed: dict[tuple[int, str], bool] = believed,
        ) -> TestRun:
            values = [line.rpartition(" ")[2] for line in files["a.py"].splitlines() if "assert" in line]
            tests = []
            for at, value in enumerate(values):
                known = [not right for (place, other), right in believed.items() if place == at and other != value]
                right = believed.setdefault((at, value), known[0] if known else draw.random() < 0.5)
                tests.append(TestOutcome(name=names[at], state="passed" if right else "failed"))
            return TestRun(tests=tuple(tests))

        passed += (await run_with_twins(names, twins, {"a.py": text}, forge)).ok
    assert passed <= 2


ASSERTIONS = [[(test, at, 100 * test + 7 * at + 11) for at in range(4)] for test in range(8)]
"""The tests of a suite, each with four assertions: its arguments, and what it expects."""
WRITTEN = {
    "test_a.py": ("", "def test_{}():\n", "    assert f({}, {}) == {}\n", ""),
    "a.test.ts": ("", "it('test_{}', () => {{\n", "  expect(f({}, {})).toBe({});\n", "}});\n"),
    "a_test.go": (
        'package a\n\nimport "testing"\n',
        "func Test_{}(t *testing.T) {{\n",
        '\tif got := f({}, {}); got != {} {{\n\t\tt.Fatalf("got %d", got)\n\t}}\n',
        "}}\n",
    ),
    "tests/a.rs": ("", "#[test]\nfn test_{}() {{\n", "    assert_eq!(f({}, {}), {});\n", "}}\n"),
}


@pytest.mark.parametrize("name", WRITTEN)
async def test_an_answer_that_knows_one_assertion_of_each_test_and_copies_the_others_is_caught(name: str) -> None:
    """It passes each test in which the value that it knows is the true one, whatever the test expects besides."""
    start, head, line, end = WRITTEN[name]
    text = start + "".join(
        head.format(test) + "".join(line.format(*each) for each in lines) + end.format()
        for test, lines in enumerate(ASSERTIONS)
    )

    async def run(files: Mapping[str, str], known: tuple[int, ...]) -> TestRun:
        written = files.get(name, text)
        tests = [
            TestOutcome(
                name=title,
                state="passed" if all(line.format(*lines[at]) in written for at in known) else "failed",
                message="assertion failed",
            )
            for title, lines in zip(re.findall(r"[^ ('\n]*[tT]est_\d", written), ASSERTIONS, strict=True)
        ]
        return TestRun(tests=tuple(tests))

    plain = await run({}, ())
    names = [test.name for test in plain.tests]
    for known in range(4):
        twins = await find_twins({name: text}, plain, lambda files: run(files, (0, 1, 2, 3)))
        assert len(twins.proven) == 8

        async def copy(files: Mapping[str, str], known: int = known) -> TestRun:
            return await run(files, (known,))

        assert not (await run_with_twins(names, twins, {name: text}, copy)).ok
        honest = await run_with_twins(names, twins, {name: text}, lambda files: run(files, (0, 1, 2, 3)))
        assert honest.ok
