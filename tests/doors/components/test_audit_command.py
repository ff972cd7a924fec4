"""`bakeoff audit`, and runs that require one."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .small_suites import ADDER, write_suites

pytestmark = pytest.mark.full

Bakeoff = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("--rounds", "1", "--mutants", "6", "--cheats", "1")
WEAK = {**ADDER, "test_adder.py": "from adder import add\n\n\ndef test_nothing_to_add():\n    assert add(5, 0) == 5\n"}
TRACK = {
    "config.json": '{"slug": "python"}',
    "exercises/practice/lame/.docs/instructions.md": "Write `double`.\n",
    "exercises/practice/lame/.meta/config.json": json.dumps(
        {"files": {"solution": ["lame.py"], "test": ["lame_test.py"], "example": [".meta/example.py"]}}
    ),
    "exercises/practice/lame/.meta/example.py": "def double(number):\n    return 2 * number\n",
    "exercises/practice/lame/lame.py": "def double(number):\n    return number + number\n",
    "exercises/practice/lame/lame_test.py": (
        "from lame import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
    ),
}


LONG = (
    "def add(a, b):\n    total = a\n    for _ in range(b):\n        total += 1\n    return total if b >= 0 else a + b\n"
)
FLAKY = "import random\nOFF = random.random() < {}\n\n\ndef add(a, b):\n    return a + b + OFF\n"
FLAWS = {
    "weak": (WEAK, "the wrong answer passes: no test finds what is wrong with it"),
    "vacuous": (
        {**ADDER, "test_adder.py": "import adder\n\n\ndef test_nothing():\n    assert adder\n"},
        "an empty answer passes",
    ),
    "leaking": (
        {**ADDER, "reference.py": LONG, "prompt.md": f"Write `add(a, b)`, such as:\n{LONG}"},
        "subjects see the answer",
    ),
    "flaky": ({**ADDER, "reference.py": FLAKY.format(0.25)}, "its reference is flaky: it failed"),
    "broken": ({**ADDER, "reference.py": "def add(a, b):\n    return a - b\n"}, "its reference does not pass"),
}
"""Suites, and how their audit says what is wrong with them."""


def test_each_flaw_of_a_suite_is_named(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", **{name: files for name, (files, _) in FLAWS.items()})
    done = bakeoff("audit", "--mutants", "4", "--cheats", "1", "--json")
    assert done.returncode == 1, done.stderr
    found = {case["case"]: case["problems"] for case in json.loads(done.stdout)["cases"]}
    assert {name: any(why in each for each in found[name]) for name, (_, why) in FLAWS.items()} == dict.fromkeys(
        FLAWS, True
    ), found


def test_an_audit_certifies_suites_and_a_run_can_require_it(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_suites(tmp_path / "tests", adder=ADDER, weak=WEAK)
    done = bakeoff("audit", *QUICK)  # as `run` and `verify` do, it finds the suites in `tests`
    assert done.returncode == 1, done.stderr
    assert "1 of 2 cases is fit for use" in done.stdout
    assert "weak: the wrong answer passes: no test finds what is wrong with it" in done.stdout
    kept = tmp_path / "results" / "audit"
    assert {path.name for path in kept.iterdir()} == {"audit.json", "audit.html", "audit.svg"}
    certificate = json.loads((kept / "audit.json").read_text())
    adder, weak = certificate["cases"]
    assert (adder["case"], adder["tests"], adder["unproven"], adder["problems"]) == ("adder", 2, {}, [])
    assert {mutant["fate"] for mutant in adder["mutants"]} == {"killed"}
    assert ("arithmetic operator", "survived") in {(mutant["kind"], mutant["fate"]) for mutant in weak["mutants"]}
    required = ("run", "--model", "oracle", "--no-open", "--exit-zero", "--require-audit", "results/audit/audit.json")
    done = bakeoff(*required, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "weak is left out: it failed its audit: the wrong answer passes" in done.stderr
    (tmp_path / "tests" / "adder" / "reference.py").write_text("def add(a, b):\n    return b + a\n")
    done = bakeoff(*required)
    assert done.returncode == 2
    assert "allows none of the cases" in done.stderr
    assert "adder is left out: it has changed since its audit" in done.stderr


def test_a_stub_that_passes_fails_its_audit(bakeoff: Bakeoff, tmp_path: Path) -> None:
    for name, text in TRACK.items():
        path = tmp_path / "track" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = bakeoff("audit", "track", *QUICK, "--json")
    assert done.returncode == 1, done.stderr
    (lame,) = json.loads(done.stdout)["cases"]
    assert lame["nop_passed"] == ["test_double"]
    assert lame["problems"][0] == "the stub that agents start from passes already: its tests measure nothing"
    run = ("agents", "run", "--exercises", "track", "--agent", "oracle", "--no-open")
    done = bakeoff(*run, "--require-audit", "results/audit/audit.json")
    assert done.returncode == 2
    assert "lame is left out: it failed its audit: the stub that agents start from passes already" in done.stderr
    done = bakeoff("audit", "nowhere")
    assert done.returncode == 2
    assert "nowhere is not a folder" in done.stderr
