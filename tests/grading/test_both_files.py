"""An attacker that has both test files of a grading still does not know which form of a test is true."""

import random
from collections.abc import Mapping

import pytest
from bench.both_files import STRUCTURE, follow_graph, judge, synthetic

from bakeoff.grading.grades import run_with_twins
from bakeoff.grading.twins import Proposals, Twin, Twins
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
