"""`bakeoff verify`: suites that measure something, and suites that do not."""

from pathlib import Path

import pytest

from bakeoff.doors.components.door import verify_suites
from bakeoff.doors.components.suites import find_suites
from bakeoff.engine.resources import sandbox_of
from bakeoff.grading.audit import VerificationCheck
from bakeoff.options import RunOptions

from .small_suites import ADDER, SHOUT, WORDS, write_suites

pytestmark = pytest.mark.full


async def checked(folder: Path, jobs: int = 2) -> dict[str, VerificationCheck]:
    checks = await verify_suites(find_suites(folder).suites, sandbox_of(RunOptions(results=folder)), jobs)
    return {check.case.id: check for check in checks}


async def test_a_suite_is_fit_when_its_reference_passes_and_empty_and_wrong_answers_fail(tmp_path: Path) -> None:
    checks = await checked(write_suites(tmp_path / "suites", adder=ADDER, shout=SHOUT))
    adder = checks["adder"]
    assert adder.ok, adder.problems
    counts = {name: (grade.passed.total(), grade.total) for name, grade in adder.grades.items()}
    assert counts == {"reference": (2, 2), "empty": (0, 2), "wrong": (1, 2)}
    assert checks["shout"].ok, checks["shout"].problems
    assert "wrong" not in checks["shout"].grades


async def test_any_command_that_writes_junit_xml_can_run_a_suite(tmp_path: Path) -> None:
    liar = WORDS["check.py"].replace("cases.append", "str")
    checks = await checked(write_suites(tmp_path / "suites", words=WORDS, liar={**WORDS, "check.py": liar}))
    words = checks["words"]
    assert words.ok, words.problems
    assert (words.grades["reference"].passed.total(), words.grades["wrong"].passed.total()) == (2, 1)
    assert list(words.grades["wrong"].failed) == ["words > two"]
    assert "'must fail', which must fail, was not seen failing" in "\n".join(checks["liar"].problems)


async def test_each_way_of_measuring_nothing_is_told(tmp_path: Path) -> None:
    lenient = "import adder\n\n\ndef test_nothing():\n    assert adder\n"
    checks = await checked(
        write_suites(
            tmp_path / "suites",
            failing={**ADDER, "reference.py": ADDER["wrong.py"]},
            lenient={**ADDER, "test_adder.py": lenient},
            refusing={**SHOUT, "reference.py": "def shout(text):\n    return text.upper()\n"},
            torn={**SHOUT, "validator.py": "def validate(code):\n    return 'fine'\n"},
        )
    )
    told = {name: "\n".join(check.problems) for name, check in checks.items()}
    assert "the reference does not pass: failed:" in told["failing"]
    partly = checks["failing"].grades["reference"]
    assert (partly.passed.total(), partly.total) == (1, 2), "its reference passes one of its two tests"
    assert "an empty answer passes" in told["lenient"]
    assert "the wrong answer passes" in told["lenient"]
    assert "the reference does not pass: 1 of 1 test passed; the validator objects: it uses upper" in told["refusing"]
    assert "the validator must return" in told["torn"]
    assert not any(check.ok for check in checks.values())
