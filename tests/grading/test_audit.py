"""Test what the file of an audit allows: cases that passed and have not changed since."""

from pathlib import Path

import pytest

from bakeoff.errors import UsageError
from bakeoff.grading.audit import Audit, AuditSettings, CaseAudit, TriedMutant, audit_digest, read_audit, unaudited
from bakeoff.plan import Case, Grading
from bakeoff.report.audit import describe_audit, flake_interval
from bakeoff.report.exports.formats import audit_badge
from bakeoff.report.render.markdown import to_markdown

pytestmark = pytest.mark.journey

MADE = "2026-01-01T00:00:00+00:00"


def case(name: str = "adder", *, prompt: str = "?", seconds: float = 5.0, tests: str = "assert True\n") -> Case:
    return Case(
        id=name,
        prompt=prompt,
        hidden={"test_a.py": tests},
        reference={"a.py": "A = 1\n"},
        grading=Grading(runner="pytest", solution=("a.py",), tests=("test_a.py",), seconds=seconds),
    )


def audit(*cases: CaseAudit) -> Audit:
    return Audit(made=MADE, settings=AuditSettings(), cases=cases)


def test_a_case_is_left_out_if_it_failed_or_changed_or_was_never_audited() -> None:
    passed = CaseAudit(case="adder", digest=audit_digest(case()))
    failed = CaseAudit(case="shout", digest=audit_digest(case("shout")), problems=("cheats pass: exit-early",))
    wanted = [case(), case("shout"), case("other")]
    assert unaudited(wanted, audit(passed, failed)) == {
        "shout": "it failed its audit: cheats pass: exit-early",
        "other": "it is not in the audit",
    }
    assert unaudited([case(tests="assert 1\n")], audit(passed)) == {"adder": "it has changed since its audit"}
    assert unaudited([case(prompt="!", seconds=60.0)], audit(passed)) == {}  # neither is about the tests


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{}", "is not the file of an audit (made: is missing)"),
        ("nonsense", "is not the file of an audit"),
        (
            audit().model_copy(update={"format": 99}).model_dump_json(),
            "has format 99, not 2: run `bakeoff audit` again",
        ),
    ],
)
def test_a_file_that_is_no_audit_is_an_error_with_the_way_out(tmp_path: Path, text: str | None, told: str) -> None:
    path = tmp_path / "audit.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as error:
        read_audit(path)
    assert told in str(error.value)
    assert "bakeoff audit" in str(error.value)


def test_a_report_has_the_numbers_of_every_case_and_of_all() -> None:
    survivor = TriedMutant(kind="off by one", place="a.py:3", before="1", after="2", fate="survived")
    killed = survivor.model_copy(update={"fate": "killed", "place": "a.py:9"})
    good = CaseAudit(
        case="adder", digest="a", tests=4, unproven={"write a literal value": ("t",)}, rounds=5, cheats=("exit-early",)
    )
    good = good.model_copy(update={"mutants": (killed, killed, killed, survivor)})
    flaky = good.model_copy(update={"case": "shout", "oracle_failures": ("1 of 4 tests passed",), "problems": ("bad",)})
    whole = audit(good, flaky)
    interval = flake_interval(whole.cases)
    assert interval is not None
    assert interval.low <= 0.1 <= interval.high
    text = to_markdown(describe_audit(whole))
    assert "1 of 2 cases is fit for use." in text
    assert "| `adder` | 4 | 3/4 | 5/5 |" in text
    assert "1 of 10: 10.0 %" in text
    assert "`adder`: `t` (write a literal value)" in text
    assert "chance to see a reference that fails 1 run in 10" in text
    assert "41.0 %" in text
    assert "6 of 8 (75.0 %)" in text
    assert "`a.py:3`" in text
    assert "`a.py:9`" not in text
    assert "1/2 fit, 75% of mutants found" in audit_badge(whole)


def test_an_edited_certificate_is_refused(tmp_path: Path) -> None:
    sealed = audit(CaseAudit(case="adder", digest="a", problems=("bad",))).sealed()
    path = tmp_path / "audit.json"
    path.write_text(sealed.model_dump_json())
    assert read_audit(path) == sealed
    assert sealed.code
    path.write_text(sealed.model_dump_json().replace('["bad"]', "[]"))
    with pytest.raises(UsageError, match="was changed since `bakeoff audit` wrote it"):
        read_audit(path)
