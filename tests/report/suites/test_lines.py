"""A test's line and its tool calls."""

import pytest

from bakeoff.record import ToolCall
from bakeoff.report.suites.outcome_lines import colour_of, detail_lines, item_line, score_words

from .evals import broken, outcome, priced, record


@pytest.mark.parametrize(
    ("score", "colour"),
    [(0.0, "red"), (0.49, "red"), (0.5, "yellow"), (0.74, "yellow"), (0.75, "green"), (1.0, "green")],
)
def test_colour_follows_the_score(score: float, colour: str) -> None:
    assert colour_of([outcome(score)]) == colour


def test_the_lowest_of_several_scores_colours_a_test() -> None:
    assert colour_of([outcome(1.0), outcome(0.6)]) == "yellow"
    assert colour_of([outcome(None, records=(broken(),), problem="boom")]) == "red"
    assert colour_of([outcome(None, threshold=None)]) == "yellow"


def test_a_line_has_the_score_the_time_and_what_is_known_of_the_spending() -> None:
    assert score_words([outcome(0.82)]) == "0.82 42ms"
    assert score_words([priced(0.82)]) == "0.82 42ms 1,204 tokens 3 tools $0.001200"
    assert score_words([outcome(1.0), outcome(None)]) == "1.00 – 84ms"
    assert "(+3)" in score_words([outcome(1.0)] * 8)


def test_a_line_keeps_to_the_width_and_never_loses_the_score() -> None:
    long = f"tests/test_x.py::test_capitals[{'x' * 200}]"
    name, rest = item_line(long, "FAILED", [outcome(0.31, long)], 60)
    assert len(f"{name} {rest}") == 60
    assert name.endswith("…]")
    assert rest == "FAILED 0.31 42ms"
    assert item_line(long, "", [outcome(0.31, long)], None)[0] == long


def test_calls_stand_under_those_that_made_them() -> None:
    calls = (
        ToolCall(name="agent", id="1", arguments={"goal": "find", "depth": 2}, duration_ms=12.3),
        ToolCall(name="other", id="3"),
        ToolCall(name="search", id="2", parent_id="1", error="no network"),
        ToolCall(name="deep", parent_id="2", arguments=[1, 2]),
    )
    assert list(detail_lines([outcome(1.0, record={"calls": calls})], "test_x.py:3", None)) == [
        ("    test_x.py:3", False),
        ("    agent(goal='find', depth=2) 12ms", False),
        ("        └ search() error: no network", True),
        ("            └ deep([1,2])", False),
        ("    other()", False),
        ("    Contains 1.00", False),
        ("    output an answer", False),
    ]


def test_ids_that_go_in_a_circle_or_name_nobody_are_drawn_once() -> None:
    calls = (
        ToolCall(name="a", id="1", parent_id="2"),
        ToolCall(name="b", id="2", parent_id="1"),
        ToolCall(name="c", id="3", parent_id="3"),
        ToolCall(name="d", parent_id="nobody"),
        ToolCall(name="e", id="1", parent_id="1"),
    )
    lines = [line for line, _ in detail_lines([outcome(1.0, record={"calls": calls})], "", None)]
    assert sorted(line.strip("└ ") for line in lines[1:-2]) == ["a()", "b()", "c()", "d()", "e()"]


def test_a_deep_chain_of_calls_is_drawn_without_end_of_stack_or_screen() -> None:
    calls = tuple(ToolCall(name=f"n{i}", id=str(i), parent_id=str(i - 1) if i else None) for i in range(5000))
    lines = [line for line, _ in detail_lines([outcome(1.0, record={"calls": calls})], "", 80)]
    assert lines[-3] == "    … 4970 more calls"
    assert max(map(len, lines)) <= 80


def test_each_round_has_its_own_calls() -> None:
    rounds = tuple(record(1.0, round_=place, calls=(ToolCall(name=f"t{place}"),)) for place in range(2))
    lines = [line for line, _ in detail_lines([outcome(1.0, records=rounds)], "", None)]
    assert [lines[1:3], lines[5:7]] == [["    round 1", "    t0()"], ["    round 2", "    t1()"]]


def test_control_characters_of_names_arguments_and_errors_are_shown_and_not_emitted() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\r\n::error::x"
    call = ToolCall(name=evil, arguments={evil: evil, "n": [evil]}, error=evil)
    hostile = outcome(1.0, f"tests/{evil}.py::test", record={"calls": (call,)})
    lines = [line for line, _ in detail_lines([hostile], hostile.nodeid, None)] + list(
        item_line(hostile.nodeid, "", [hostile], 80)
    )
    assert all(line.isprintable() for line in lines)
