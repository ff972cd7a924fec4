"""One exception tree."""

from bakeoff.errors import PlanError


def test_a_plan_error_lists_its_problems_line_by_line() -> None:
    error = PlanError(["one", "two"])
    assert (error.problems, str(error)) == (("one", "two"), "one\ntwo")
