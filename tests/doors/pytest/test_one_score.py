"""A case has one score, whoever shows it: pytest, the commands, the pages and the exports."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ...warm_bakeoff import Bakeoff
from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

ROUNDS = """
answers = iter({answers!r})

def steady(given):
    if given.output == "unreadable":
        raise ValueError(given.output)
    return None

@eval_suite(data=rows("a"), scorers=[right, steady], threshold=1.0, rounds=2, concurrency=1, gate={gate!r})
async def test_it(case):
    return next(answers)

@eval_suite(data=rows("b", "c"), scorers=[right])
async def test_once(case):
    return "<b>"
"""
HALF = ["<a>", "something else"]


@pytest.mark.parametrize(
    ("answers", "gate", "score"),
    [
        (HALF, "mean", 0.5),
        (HALF, "pass@k", 1.0),
        (HALF, "pass^k", 0.0),
        (["<a>", "unreadable"], "mean", None),
        (["<a>", "unreadable"], "pass@k", None),
        (["<a>", "unreadable"], "pass^k", None),
    ],
)
def test_the_score_of_a_case_is_the_same_everywhere(
    bakeoff: Bakeoff, project: SmallProject, answers: list[str], gate: str, score: float | None
) -> None:
    project.write(ROUNDS.format(answers=answers, gate=gate))
    seen = project.run("--eval-json", "evals.json")
    assert seen.outcome("a").score == score

    kept: Any = json.loads(Path("evals.json").read_text())
    cases = {case["case"]: case for suite in kept["suites"] for case in suite["cases"]}
    assert cases["a"]["score"] == score

    shown = json.loads(bakeoff("runs", "show", "latest", "--json").stdout)
    (subject,) = shown["summary"]["subjects"]
    scores = [one for one in (score, 1.0, 0.0) if one is not None]
    assert subject["cases"] == len(scores)
    assert subject["score"] == kept["numbers"]["score"] == pytest.approx(sum(scores) / len(scores))
    interval = kept["numbers"]["interval"]
    assert subject["interval"] == interval

    for run in ("latest", "evals.json"):
        exported = bakeoff("export", run, "--format", "junit", "-o", "-").stdout
        (case,) = (
            case for case in ElementTree.fromstring(exported).iter("testcase") if case.attrib["name"].endswith("[a]")
        )
        told = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
        assert told.get("score") == (None if score is None else f"{score:g}")

    bakeoff("report", "latest", "-o", "page.html")
    text = "lost" if score is None else f"{100 * score:.0f}"
    row = Path("page.html").read_text().partition("test_it[a]</th>")[2].partition("</tr>")[0]
    assert re.search(rf'class="cell [^>]*>{text}<', row)

    board = json.loads(bakeoff("leaderboard", "--json").stdout)
    (entry,) = board["entries"]
    assert entry["standing"]["score"] == subject["score"]
