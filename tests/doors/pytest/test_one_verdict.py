"""A case has one verdict, whoever reports it: pytest, the commands, the pages and the exports."""

import csv
import json
import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ...warm_bakeoff import Bakeoff
from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

HALF = """
answers = iter(["<a>", "something else"])

@eval_suite(data=rows("a"), scorers=[right], threshold={threshold}, rounds=2, concurrency=1, gate={gate!r})
async def test_it(case):
    return next(answers)
"""

FEWER_ROUNDS = """
@eval_suite(data=rows("b"), scorers=[right])
async def test_once(case):
    return "<b>"
"""


@pytest.mark.parametrize(
    ("threshold", "gate", "passed"),
    [(0.5, "mean", True), (0.6, "mean", False), (1.0, "pass@k", True), (1.0, "pass^k", False), (None, "mean", None)],
)
def test_one_round_of_two_fails(
    bakeoff: Bakeoff, project: SmallProject, threshold: float | None, gate: str, passed: bool | None
) -> None:
    project.write(HALF.format(threshold=threshold, gate=gate) + FEWER_ROUNDS)
    seen = project.run("--eval-json", "evals.json")
    verdict = {True: "pass", False: "fail", None: "recorded"}[passed]

    assert seen.counts() == ({"passed": 2} if verdict != "fail" else {"passed": 1, "failed": 1})
    assert seen.outcome("a").passed is passed

    _same_verdict_in_exports(bakeoff, verdict)
    shown = bakeoff("runs", "show", "latest").stdout
    counts = {"pass": "2/2", "fail": "1/2", "recorded": "1/1"}[verdict]
    assert re.search(rf"^evals .* {counts} ", shown, re.MULTILINE)
    assert ("fail " in shown) == (verdict == "fail")
    told = json.loads(bakeoff("runs", "show", "latest", "--json").stdout)
    (subject,) = told["summary"]["subjects"]
    assert (subject["passed"], subject["judged"]) == tuple(map(int, counts.split("/")))
    assert subject["failed"] == (verdict == "fail")
    cases = {case["case"]: case for suite in _json("evals.json")["suites"] for case in suite["cases"]}
    assert cases["a"]["passed"] is passed
    _same_verdict_on_the_page(bakeoff, verdict, counts)


def _same_verdict_in_exports(bakeoff: Bakeoff, verdict: str) -> None:
    def export(format_: str, run: str = "latest") -> str:
        return bakeoff("export", run, "--format", format_, "-o", "-").stdout

    for run in ("latest", "evals.json"):
        (suite,) = ElementTree.fromstring(export("junit", run)).findall("testsuite")
        assert suite.attrib["tests"] == "2"
        assert suite.attrib["failures"] == ("1" if verdict == "fail" else "0")
        assert (suite.attrib["errors"], suite.attrib["skipped"]) == ("0", "0")
    rows = [row for row in csv.DictReader(StringIO(export("csv"))) if row["case"].endswith("test_it[a]")]
    assert [row["case_verdict"] for row in rows] == [verdict, verdict]
    assert ("test_it[a]" in export("markdown")) == (verdict == "fail")
    assert ("::error" in export("github")) == (verdict == "fail")


def _same_verdict_on_the_page(bakeoff: Bakeoff, verdict: str, counts: str) -> None:
    bakeoff("report", "latest", "-o", "page.html")
    page = Path("page.html").read_text()
    assert re.search(rf">\s*{counts}\s*<", page)
    tone = {"recorded": "plain"}.get(verdict, verdict)
    note = "recorded" if verdict == "recorded" else f"{verdict}: 1 of 2 rounds passed"
    assert re.search(rf'class="[^"]*{tone}[^"]*"[^>]*title="{note}', page)
    assert ("Nothing failed." in page) == (verdict != "fail")


def _json(path: str) -> dict[str, list[dict[str, list[dict[str, object]]]]]:
    found: dict[str, list[dict[str, list[dict[str, object]]]]] = json.loads(Path(path).read_text())
    return found
