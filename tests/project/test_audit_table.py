"""The table of the bundled audit in the docs: a row for every case, and enough mutants that are found."""

import re
from pathlib import Path

from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.doors.components import suites

DOCS = Path(__file__).parents[2] / "docs" / "explanation" / "audit.md"


def test_the_docs_have_a_row_for_every_bundled_case_and_most_mutants_are_found() -> None:
    text = DOCS.read_text("utf-8").partition("<!-- audit -->")[2].partition("<!-- end -->")[0]
    rows = re.findall(r"^\| `([^`]+)` \|.* (\d+)/(\d+) \|", text, re.MULTILINE)
    bundled = [suite.name for suite in suites.discover(suites.bundled_folder()).suites]
    bundled += [exercise.name for exercise in find_exercises(None).exercises]
    assert sorted(name.rpartition("/")[2] for name, _, _ in rows) == sorted(bundled)
    found, tried = (sum(int(row[place]) for row in rows) for place in (1, 2))
    assert tried >= 10 * len(rows)
    assert found >= 0.9 * tried
    assert f"{found} of {tried}" in text
