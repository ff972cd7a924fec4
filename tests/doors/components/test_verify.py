"""`bakeoff verify`: suites that measure something, and suites that do not."""

from pathlib import Path

from bakeoff.doors.components.suites import find_suites
from bakeoff.doors.components.verify import Check, verify_suites
from bakeoff.engine.run import sandbox_of
from bakeoff.options import RunOptions

from .small_suites import ADDER, SHOUT, WORDS, write_suites


async def checked(folder: Path, jobs: int = 2) -> dict[str, Check]:
    checks = await verify_suites(find_suites(folder).suites, sandbox_of(RunOptions(results=folder)), jobs)
    return {check.suite.name: check for check in checks}


async def test_a_suite_is_fit_when_its_reference_passes_and_empty_and_wrong_answers_fail(tmp_path: Path) -> None:
    checks = await checked(write_suites(tmp_path / "suites", adder=ADDER, shout=SHOUT))
    adder = checks["adder"]
    assert adder.ok, adder.problems
    assert adder.reference is not None
    assert adder.empty is not None
    assert adder.wrong is not None
    counts = [(each.num_passed, each.num_tests) for each in (adder.reference, adder.empty, adder.wrong)]
    assert counts == [(2, 2), (0, 2), (1, 2)]
    assert checks["shout"].ok, checks["shout"].problems
    assert checks["shout"].wrong is None


async def test_any_command_that_writes_junit_xml_can_run_a_suite(tmp_path: Path) -> None:
    liar = WORDS["check.py"].replace("cases.append", "str")
    checks = await checked(write_suites(tmp_path / "suites", words=WORDS, liar={**WORDS, "check.py": liar}))
    words = checks["words"]
    assert words.ok, words.problems
    assert words.reference is not None
    assert words.wrong is not None
    assert (words.reference.num_passed, words.wrong.num_passed) == (2, 1)
    assert words.wrong.failed_tests is not None
    assert [test.full_name for test in words.wrong.failed_tests] == ["words > two"]
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
    assert "an empty answer passes" in told["lenient"]
    assert "the wrong answer passes" in told["lenient"]
    assert "the reference does not pass: 1 of 1 tests passed; the validator objects: it uses upper" in told["refusing"]
    assert "the validator must return" in told["torn"]
    assert not any(check.ok for check in checks.values())
