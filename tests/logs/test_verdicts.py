"""`bakeoff compare` and `leaderboard` take the logs of other tools to a verdict, with the numbers of these tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from ..warm_bakeoff import Bakeoff
from .test_hostile_logs import archive

pytestmark = pytest.mark.journey


def rated(path: Path, *values: object, scorer: str = "rating", **more: object) -> Path:
    """Write a log of Inspect with a case for each value; `more` are values of other scorers, the same for all cases."""
    others = {name: {"value": value} for name, value in more.items()}
    return archive(path, *({"scores": {scorer: {"value": value}, **others}} for value in values))


def compared(bakeoff: Bakeoff, *words: str) -> Any:
    done = bakeoff("compare", *words, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_scorer_with_a_value_outside_0_to_1_is_refused_whole_and_a_scale_is_the_way_out(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    first, second = rated(tmp_path / "a.eval", 1, 5.5, 10), rated(tmp_path / "b.eval", 1, 1, 1)
    for words in (("compare", str(first), str(second)), ("leaderboard", str(first)), ("import", str(first))):
        refused = bakeoff(*words)
        assert refused.returncode == 2
        assert "a.eval: scorer 'rating' has the value 5.5, which is not from 0 to 1: give its worst" in refused.stderr
        assert "--scale LOW:HIGH" in refused.stderr
    [pair] = compared(bakeoff, str(first), str(second), "--scale", "1:10")["pairs"]
    assert (pair["comparison"]["baseline"], pair["comparison"]["candidate"]) == (0.5, 0.0)
    board = bakeoff("leaderboard", str(first), "--scale", "rating=10:1")
    assert "50.0 %" in board.stdout, "where less is better, the scale is given backwards"


@pytest.mark.parametrize(
    ("scale", "problem"),
    [
        ("1:5", "has the value 5.5, which is not from 1 to 5: widen the scale, or give it to one scorer"),
        ("1", "--scale '1' is not LOW:HIGH or NAME=LOW:HIGH, such as 1:10 or rating=1:10"),
        ("2:2", "--scale '2:2' is not LOW:HIGH"),
        ("0:inf", "--scale '0:inf' is not LOW:HIGH"),
        ("other=1:10", "has the value 5.5, which is not from 0 to 1"),
    ],
)
def test_a_scale_that_does_not_fit_is_refused(bakeoff: Bakeoff, tmp_path: Path, scale: str, problem: str) -> None:
    refused = bakeoff("import", str(rated(tmp_path / "a.eval", 1, 5.5, 10)), "--scale", scale)
    assert refused.returncode == 2
    assert problem in refused.stderr


def test_scores_on_two_scales_are_not_compared(bakeoff: Bakeoff, tmp_path: Path) -> None:
    log = rated(tmp_path / "a.eval", 2, 3, 4)
    runs = [Path(bakeoff("import", str(log), "--scale", scale).stdout.strip()).name for scale in ("1:10", "1:5")]
    done = bakeoff("compare", *runs)
    assert done.returncode == 3
    assert "not comparable: scorers" in done.stdout


def test_options_for_logs_are_refused_for_a_run(bakeoff: Bakeoff, tmp_path: Path) -> None:
    assert bakeoff("import", str(rated(tmp_path / "a.eval", 0, 1))).returncode == 0
    refused = bakeoff("compare", "latest", str(tmp_path / "a.eval"), "--scorer", "rating")
    assert refused.returncode == 2
    assert "latest is no log of another tool: --scorer, --scale" in refused.stderr
