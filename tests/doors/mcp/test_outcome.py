"""Test when a cell and a suite have passed, have failed, or are undecided."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest

from bakeoff.doors.mcp.outcome import (
    NO_ANSWER,
    OTHERS,
    CallOutcome,
    CellOutcome,
    confusions,
    most_confused,
    outcome_of,
)
from bakeoff.doors.mcp.plan import McpPlanSettings
from bakeoff.plan import Case, PassRule, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Record, Score
from bakeoff.report.gates import Allowance, GateState, decide_gate
from bakeoff.scorers.mcp.calls import UNREADABLE
from bakeoff.storage.ledger import Ledger


@pytest.mark.parametrize(
    ("passed", "scored", "threshold", "state"),
    [
        (10, 10, 1.0, "passed"),
        (8, 10, 0.8, "passed"),
        (7, 10, 0.8, "failed"),
        (0, 0, 0.8, "undecided"),
        (8, 8, 0.8, "passed"),  # what is missing cannot change it
        (7, 7, 0.8, "undecided"),
        (7, 8, 1.0, "failed"),
        (0, 10, 0.0, "passed"),
        (3, 10, 0.3, "passed"),
        (0, 3, 0.8, "failed"),
    ],
)
def test_a_cell_is_decided_as_soon_as_what_is_missing_cannot_change_it(
    passed: int, scored: int, threshold: float, state: str, make_record: Callable[..., Record]
) -> None:
    settings = McpPlanSettings(file="s.yaml", report="r", servers=(), threshold=threshold, concurrencyLimit=1)
    values = [1.0] * passed + [0.0] * (scored - passed)
    records = [
        make_record(subject="m", round=at, scores=(Score(name="mcp", value=value),)) for at, value in enumerate(values)
    ]
    [cell] = outcome_of(_plan(rounds=10, share=threshold), records, settings).cells
    assert (cell.state, cell.passed, cell.scored) == (state, passed, scored)


@pytest.mark.parametrize(
    ("rule", "threshold", "passed", "failed", "state"),
    [
        ("all", 0.5, 4, 0, "passed"),
        ("all", 0.5, 3, 1, "failed"),
        ("all", 0.5, 3, 0, "undecided"),
        ("ratio", 0.5, 2, 2, "passed"),
        ("ratio", 0.5, 1, 3, "failed"),
        ("ratio", 0.5, 1, 2, "undecided"),
        ("ratio", 1.0, 4, 0, "passed"),
    ],
)
def test_a_suite_passes_with_all_of_its_cells_or_a_share_of_them(
    rule: Literal["all", "ratio"], threshold: float, passed: int, failed: int, state: str
) -> None:
    counts: dict[GateState, int] = {
        GateState.PASSED: passed,
        GateState.FAILED: failed,
        GateState.UNDECIDED: 4 - passed - failed,
    }
    cells = tuple(CellOutcome("c", "m", 1, (), each) for each, count in counts.items() for _ in range(count))
    ledger = Ledger(planned=4, passed=passed, failed=failed, missing={"infra": 4 - passed - failed})
    assert CallOutcome(cells, rule, threshold, ledger).state == state


def test_a_suite_that_reached_its_share_is_undecided_while_trials_are_missing_unless_allowed() -> None:
    cells = tuple(CellOutcome("c", "m", 1, (), state) for state in (*[GateState.PASSED] * 3, GateState.UNDECIDED))
    outcome = CallOutcome(cells, "ratio", 0.5, Ledger(planned=4, passed=3, missing={"infra": 1}))
    assert outcome.state is GateState.UNDECIDED
    assert decide_gate(replace(outcome.evidence, allowed=Allowance(1))).state is GateState.PASSED


def test_a_lost_cell_that_is_allowed_does_not_count() -> None:
    cells = tuple(CellOutcome("c", "m", 1, (), state) for state in (*[GateState.PASSED] * 9, GateState.UNDECIDED))
    outcome = CallOutcome(cells, "all", 1.0, Ledger(planned=10, passed=9, missing={"infra": 1}))
    assert outcome.state is GateState.UNDECIDED
    assert decide_gate(replace(outcome.evidence, allowed=Allowance(1))).state is GateState.PASSED


def _called(*tools: str) -> list[dict[str, object]]:
    return [{"serverName": "s", "toolName": tool, "parameters": {}} for tool in tools]


def _plan(*tools: str, rounds: int, share: float = 1.0) -> Plan:
    return Plan(
        name="p",
        cases=(
            Case(
                id="c",
                prompt="x",
                expected={"calls": _called(*tools)},
                pass_rule=PassRule(gate="share", share=share),
            ),
        ),
        subjects=(SubjectSpec(kind="nop", name="m"),),
        scorers=(ScorerSpec(kind="mcp"),),
        rounds=rounds,
    )


@pytest.fixture
def heard(make_record: Callable[..., Record]) -> Callable[..., Record]:
    def make(round_: int, *tools: str, value: float = 0.0, **metadata: str) -> Record:
        score = Score(name="mcp", value=value, metadata={"called": _called(*tools), **metadata})
        return make_record(case="c", subject="m", round=round_, scores=(score,))

    return make


def test_calls_are_set_against_what_was_wanted_and_what_is_lost_is_left_out(
    heard: Callable[..., Record], make_record: Callable[..., Record]
) -> None:
    plan = _plan("a", "b", rounds=6)
    late = Phase(seconds=1, failure=Failure(kind="timeout", type="T", message="late"))
    lost = Phase(seconds=1, failure=Failure(kind="infra", type="I", message="gone"))
    records = [
        heard(0, "a", "b", value=1.0),
        heard(1, "b", "b"),
        heard(2, "a"),
        heard(3, failure_class="unreadable reply"),
        make_record(case="c", subject="m", round=4, attempt=late, transcript=None, scores=()),
        make_record(case="c", subject="m", round=5, attempt=lost, transcript=None, scores=()),
    ]
    [confusion] = confusions(plan, records)
    assert dict(confusion.counts) == {
        ("s / a", "s / a"): 2,
        ("s / a", "s / b"): 1,
        ("s / a", UNREADABLE): 1,
        ("s / a", NO_ANSWER): 1,
        ("s / b", "s / b"): 2,
        ("s / b", "no tool"): 1,
        ("s / b", UNREADABLE): 1,
        ("s / b", NO_ANSWER): 1,
    }
    assert confusion.called()[:2] == confusion.wanted() == ["s / a", "s / b"]
    assert {(pair.wanted, pair.called) for pair in most_confused([confusion], [])} == {
        ("s / a", "s / b"),
        ("s / b", "no tool"),
    }


def test_tools_without_end_that_a_model_makes_up_are_told_as_one(heard: Callable[..., Record]) -> None:
    records = [heard(0, *(f"t{number}" for number in range(3_000))), heard(1, "t7"), heard(2, "a", value=1.0)]
    [confusion] = confusions(_plan("a", rounds=3), records)
    assert len(confusion.called()) < 40
    assert confusion.counts["s / a", "s / a"] == 1
    assert confusion.counts["s / a", "s / t7"] == 1
    assert confusion.counts["no tool", OTHERS] == 1, "in one round, however many they were"


@pytest.mark.parametrize(
    ("wanted", "called", "pairs"),
    [
        ("abc", "abc", "aa bb cc"),
        ("aba", "ba", "a- bb aa"),  # one too few, and all that follow it are right
        ("ab", "xab", "-x aa bb"),  # one too many
        ("ab", "bb", "ab bb"),  # one for another
        ("abc", "axc", "aa bx cc"),
        ("abc", "xc", "ax b- cc"),
        ("ab", "ba", "-b aa b-"),  # in another order, none is taken for another
        ("ab", "", "a- b-"),
        ("a", "xyz", "ax -y -z"),
    ],
)
def test_only_calls_that_took_the_place_of_another_are_confusions(
    heard: Callable[..., Record], wanted: str, called: str, pairs: str
) -> None:
    def label(letter: str) -> str:
        return "no tool" if letter == "-" else f"s / {letter}"

    [confusion] = confusions(_plan(*wanted, rounds=1), [heard(0, *called)])
    assert dict(confusion.counts) == {(label(pair[0]), label(pair[1])): 1 for pair in pairs.split()}


def test_a_tool_that_is_wanted_twice_is_counted_once_for_each_round(heard: Callable[..., Record]) -> None:
    records = [heard(0, "a", "a", value=1.0), heard(1, "a", "b"), heard(2, "b", "b")]
    [confusion] = confusions(_plan("a", "a", rounds=3), records)
    assert dict(confusion.counts) == {("s / a", "s / a"): 2, ("s / a", "s / b"): 2}
    assert dict(confusion.rounds) == {"s / a": 3}
    assert [pair.rounds for pair in most_confused([confusion], [])] == [2]
