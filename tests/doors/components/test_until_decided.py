"""`bakeoff run --until-decided` as someone types it."""

import json
from pathlib import Path

import pytest

from ...warm_bakeoff import Bakeoff
from .small_suites import ADDER, calling, scripted, write_suites

pytestmark = pytest.mark.full

SUITES = 12


def test_a_run_stops_when_one_model_is_better_and_says_what_it_saved(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", **{f"adder{number}": ADDER for number in range(SUITES)})
    scripted(tmp_path / "good.json", [calling("ResultWrite", ADDER["reference.py"])])
    scripted(tmp_path / "bad.json", [calling("ResultWrite", "def add(a, b):\n    return None\n")])
    words = ("--model", "scripted:good.json", "--model", "scripted:bad.json")
    done = bakeoff("run", *words, "--until-decided", "--no-open", "--jobs", "2")
    assert done.returncode == 1, done.stderr
    told = " ".join(done.stdout.split())
    assert "scripted:good.json is better than scripted:bad.json" in told
    assert "trials (" in told
    assert "were not needed" in told
    assert "anytime-valid" in told
    summary = json.loads(bakeoff("runs", "show", "--json").stdout)["summary"]
    [pair] = summary["comparisons"]["pairs"]
    assert pair["decision"] == "regressed"
    assert pair["interval"]["high"] < 0
    assert summary["comparisons"]["trials_saved"] > 0
    assert bakeoff("runs", "show").stdout.splitlines()[0].endswith(": failed")
    again = bakeoff("resume", "--dry-run")
    assert "0 of 24 trials are left to do" in again.stdout
    page = next((tmp_path / "results").glob("runs/*/report.html")).read_text()
    assert "Comparisons" in page
    assert "anytime-valid" in page
    compared = bakeoff("compare", "latest", "--subject-a", "scripted:good.json", "--subject-b", "scripted:bad.json")
    assert "p and interval assume a fixed number of cases" in " ".join(compared.stdout.split())


def test_a_pair_that_is_not_decided_does_not_change_the_exit_code(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", one=ADDER, two=ADDER)
    for name in ("a.json", "b.json"):
        scripted(tmp_path / name, [calling("ResultWrite", ADDER["reference.py"])])
    words = ("run", "--model", "scripted:a.json", "--model", "scripted:b.json", "--until-decided", "--no-open")
    done = bakeoff(*words)
    assert done.returncode == 0, done.stderr
    assert "Not decided; all cases were tried." in done.stdout
    limited = bakeoff(*words, "--max-seconds", "0.000001")
    assert limited.returncode == 3, "trials that were needed are missing"
    assert "Not decided; the run is not finished." in limited.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--model", "scripted:hi", "--until-decided"), "has 1 subject to compare (controls do not count)"),
        (("--model", "scripted:a", "--model", "scripted:b", "--margin", "0.1"), "--margin 0.1 is for --until-decided"),
        (
            ("--model", "scripted:a", "--model", "scripted:b", "--until-decided", "--margin", "5"),
            "--margin 5 is not above 0 and at most 1: 0.05 stands for 5 points",
        ),
    ],
)
def test_what_cannot_be_decided_is_told_before_anything_is_paid_for(
    bakeoff: Bakeoff, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    done = bakeoff("run", *words)
    assert done.returncode == 2, done.stdout
    assert told in " ".join(done.stderr.split())
    assert not (tmp_path / "results").exists()


def test_a_dry_run_says_that_this_is_the_most(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER)
    words = ("--model", "scripted:a", "--model", "scripted:b", "--until-decided", "--margin", "0.05", "--dry-run")
    done = bakeoff("run", *words)
    assert done.returncode == 0, done.stderr
    assert "until decided: subjects are compared in pairs after every case" in done.stdout
    assert "equivalent within ±5 points; this is the most it runs" in " ".join(done.stdout.split())
