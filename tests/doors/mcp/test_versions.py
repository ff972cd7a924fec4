"""Two versions of a server, and the points that each tool won or lost between them."""

import json
from pathlib import Path

import pytest

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.plan import EvaluationRequest
from bakeoff.doors.mcp.runs import compare_servers, last_two_runs
from bakeoff.errors import UsageError
from bakeoff.report.compare.tool_versions import VersionReport, describe_versions
from bakeoff.report.render.markdown import to_markdown

from ...warm_bakeoff import Bakeoff
from .reader import BETTER, DESCRIPTIONS, PROMPTS, write_words

RESULTS = Path("results")


def evaluate_words(**changed: str) -> None:
    evaluate(EvaluationRequest(path=write_words(Path.cwd(), {**DESCRIPTIONS, **changed})))


@pytest.fixture
def two_versions(nobody: None) -> None:
    evaluate_words()
    evaluate_words(remove=BETTER)


def compared() -> VersionReport:
    return compare_servers(*last_two_runs(RESULTS))


@pytest.mark.usefixtures("two_versions")
def test_the_tool_with_the_better_description_wins_points_and_the_others_stay(bakeoff: Bakeoff) -> None:
    report = compared()
    remove, weather = report.tools
    assert (remove.tool, remove.comparison.difference, remove.ruling.verdict) == ("words / remove", 1.0, "improved")
    assert [change.kind for change in remove.changes] == ["description-changed"]
    assert (weather.comparison.difference, weather.changes) == (0.0, ())
    assert report.comparison.wins == len(PROMPTS["remove"])
    assert report.exit_code == 0
    done = bakeoff("mcp", "compare", "--html", "versions.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Gate passed: an improvement is shown.")
    newest = max(Path("mcp-report").glob("*.html"))
    page = Path("versions.html").read_text()
    assert "Delete messages for good" in newest.read_text(), "the page of the run shows it too"
    assert "Delete messages for good" in page
    assert "Handle an item." in page
    assert "+70.0" in page


def test_a_worse_description_shuts_the_gate(nobody: None, bakeoff: Bakeoff) -> None:
    evaluate_words(remove=BETTER)
    evaluate_words()
    done = bakeoff("mcp", "compare", "--json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["tools"][0]["ruling"]["verdict"] == "regressed"
    assert bakeoff("mcp", "compare", "--exit-zero").returncode == 0


@pytest.mark.usefixtures("nobody")
def test_a_renamed_tool_keeps_its_points_and_one_without_cases_is_listed() -> None:
    evaluate_words(remove=BETTER)
    config = write_words(
        Path.cwd(), {"archive": "Put aside.", "delete_item": BETTER, "weather": "The forecast of a place."}
    )
    config.write_text(config.read_text().replace('"remove"', '"delete_item"'))
    evaluate(EvaluationRequest(path=config))
    report = compared()
    assert [(one.tool, one.comparison.difference) for one in report.tools] == [
        ("words / delete_item", 0.0),
        ("words / weather", 0.0),
    ]
    assert [change.kind for change in report.tools[0].changes] == ["tool-renamed"]
    assert [(change.name, change.kind) for change in report.other_changes] == [("archive", "description-changed")]


@pytest.mark.usefixtures("nobody")
def test_words_of_a_server_stay_text_in_a_report() -> None:
    evaluate_words()
    evaluate_words(remove="Delete, erase, wipe, destroy\n<script>alert(1)</script>\n::error::x\x1b[2J")
    text = to_markdown(describe_versions(compared()))
    assert "\n<script>" not in text
    assert "\x1b" not in text


@pytest.mark.usefixtures("nobody")
def test_runs_that_cannot_be_compared_say_what_to_do(bakeoff: Bakeoff) -> None:
    with pytest.raises(UsageError, match=r"results has no run of an MCP evaluation"):
        last_two_runs(RESULTS)
    evaluate_words()
    with pytest.raises(UsageError, match=r"has only one run of .*mcp-testing-framework\.yaml: change the server"):
        last_two_runs(RESULTS)
    done = bakeoff("mcp", "compare", "latest")
    assert (done.returncode, "Name a second run" in done.stderr) == (2, True)
    twice = bakeoff("mcp", "compare", "latest", "latest")
    assert (twice.returncode, "is the same run as the baseline" in twice.stderr) == (2, True)


FEW = {"remove": PROMPTS["remove"][:4], "weather": PROMPTS["weather"]}


def evaluate_few(prompts: dict[str, list[str]], *descriptions: str) -> None:
    for text in descriptions:
        evaluate(EvaluationRequest(path=write_words(Path.cwd(), {**DESCRIPTIONS, "remove": text}, prompts)))


@pytest.mark.usefixtures("nobody")
def test_the_headline_names_a_tool_that_is_decided_where_all_cases_together_are_not() -> None:
    evaluate_few(FEW, BETTER, DESCRIPTIONS["remove"])
    report = compared()
    assert report.comparison.p_value is not None
    assert report.comparison.p_value > 0.05
    assert (report.ruling.verdict, report.exit_code) == ("regressed", 1)
    assert report.ruling.sentence.startswith("regressed: words / remove (-100.0 points in 4 cases, p = 0.031)")
    shown = to_markdown(describe_versions(report))
    assert "o regression" not in shown
    assert "all 7 cases together: -57.1 points" in shown


@pytest.mark.usefixtures("nobody")
def test_an_undecidable_comparison_tells_how_many_cases_would_decide() -> None:
    prompts = {"remove": ["Delete it.", "Erase that.", "Ruin it."], "weather": PROMPTS["weather"]}
    evaluate_few(prompts, DESCRIPTIONS["remove"], BETTER)
    report = compared()
    assert report.ruling.verdict == "undecidable"
    assert report.advice is not None
    assert "cases like these 6 would show a difference of this size" in report.advice
    assert "bakeoff mcp generate" in to_markdown(describe_versions(report))


@pytest.mark.usefixtures("nobody")
def test_a_damaged_newest_run_is_not_passed_over(bakeoff: Bakeoff) -> None:
    evaluate_words()
    (newest,) = (RESULTS / "runs").iterdir()
    (newest / "plan.json").write_text("{")
    done = bakeoff("mcp", "compare")
    assert done.returncode == 2
    assert f"name two others, or remove the folder {newest}" in done.stderr
