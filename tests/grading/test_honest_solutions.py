"""A sample of `make honest`: solutions in other ways than the reference, right and wrong, keep their verdicts."""

import pytest

from .against_plain import compare_with_plain
from .corpus import Solution, made_up_cases, solutions_of

pytestmark = pytest.mark.full

SAMPLE = {
    "python passphrase": ("generous", "strict", "constant"),
    "typescript space-age": ("rough", "nonsense"),
}


def sample(case_name: str) -> list[Solution]:
    (case,) = [case for case in made_up_cases() if case.name == case_name]
    return [each for each in solutions_of(case, mutants=0) if each.name in SAMPLE[case_name]]


@pytest.mark.parametrize("case_name", SAMPLE)
async def test_honest_solutions_keep_the_verdicts_of_the_plain_tool(case_name: str) -> None:
    compared = await compare_with_plain(sample(case_name))
    assert [each.difference for each in compared] == [None] * len(SAMPLE[case_name])
    assert {each.solution.kind: each.passes_plainly for each in compared}.get("alternative") is True
    assert all(each.plain for each in compared)
