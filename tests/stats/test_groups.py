"""Leaderboards that rank no more than the data do."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.stats import CaseKey, Cell, Cells, Interval, leaderboard, leaderboard_of_intervals
from bakeoff.stats.groups import tied_groups

from .simulation import cells_from_passes

unhurried = settings(deadline=None)  # the first call imports scipy


def passes(count: int, cases: int = 100) -> Cells:
    return {CaseKey(str(place)): Cell.of([place < count]) for place in range(cases)}


def test_subjects_that_cannot_be_told_apart_share_a_group_and_a_range_of_ranks() -> None:
    board = leaderboard({"bad": passes(20), "good": passes(80), "better": passes(82)})
    assert [(row.subject, row.best, row.worst, row.groups) for row in board] == [
        ("better", 1, 2, (1,)),
        ("good", 1, 2, (1,)),
        ("bad", 3, 3, (2,)),
    ]


def test_one_between_two_that_differ_may_be_like_both() -> None:
    board = leaderboard({"top": passes(60), "middle": passes(55), "bottom": passes(50)})
    assert [row.groups for row in board] == [(1,), (1, 2), (2,)]
    assert [(row.best, row.worst) for row in board] == [(1, 2), (1, 3), (2, 3)]


def test_equal_scores_are_ordered_by_name_and_tied() -> None:
    board = leaderboard({"b": passes(50), "a": passes(50)})
    assert [(row.subject, row.best, row.worst) for row in board] == [("a", 1, 2), ("b", 1, 2)]


def test_a_board_is_the_same_whatever_the_order_it_is_given_in() -> None:
    subjects = {f"s{count}": passes(count) for count in (10, 40, 45, 70)}
    assert leaderboard(subjects) == leaderboard(dict(reversed(subjects.items())))


def test_one_subject_is_alone_at_the_top_and_none_make_an_empty_board() -> None:
    only = leaderboard({"only": passes(3)})
    assert [(row.best, row.worst, row.groups) for row in only] == [(1, 1, (1,))]
    assert leaderboard({}) == ()


def test_more_subjects_need_stronger_proof() -> None:
    pair = {"a": passes(56), "b": passes(50)}
    assert [row.worst for row in leaderboard(pair)] == [1, 2]
    crowd = {**pair, **{f"c{number}": passes(53) for number in range(5)}}
    board = {row.subject: row for row in leaderboard(crowd)}
    assert board["a"].worst == 7


def test_runs_without_common_cases_are_compared_unpaired() -> None:
    other = {CaseKey(f"other {place}"): Cell.of([place < 20]) for place in range(100)}
    assert [row.groups for row in leaderboard({"here": passes(80), "there": other})] == [(1,), (2,)]


def test_where_only_intervals_are_known_those_that_overlap_are_tied() -> None:
    def around(middle: float) -> tuple[float, Interval]:
        return middle, Interval(low=middle - 0.1, high=middle + 0.1, method="t")

    board = leaderboard_of_intervals({"a": around(0.8), "b": around(0.7), "c": around(0.4), "unknown": (0.2, None)})
    assert [(row.subject, row.groups) for row in board] == [("a", (1,)), ("b", (1,)), ("c", (1,)), ("unknown", (1,))]
    known = leaderboard_of_intervals({"a": around(0.8), "b": around(0.7), "c": around(0.4)})
    assert [row.groups for row in known] == [(1,), (1,), (2,)]


def test_twenty_equal_subjects_are_one_group_nearly_always() -> None:
    random = np.random.default_rng(11)
    split = 0
    for _ in range(40):
        chance = random.beta(0.5, 0.5, 60)
        board = leaderboard({str(n): cells_from_passes(random.binomial(3, chance), 3) for n in range(8)})
        split += any(row.groups != (1,) for row in board)
    assert split <= 5  # 5 % of 40, and three standard errors


@unhurried
@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_groups_hold_everybody_and_never_split_a_pair_that_is_not_told_apart(
    drawn: tuple[int, set[tuple[int, int]]],
) -> None:
    count, pairs = drawn
    order = [f"s{place}" for place in range(count)]
    told_apart = {(order[upper], order[lower]) for upper, lower in pairs if upper < lower}
    groups = tied_groups(order, told_apart)
    assert {name for group in groups for name in group} == set(order)
    for upper in range(count):
        for lower in range(upper + 1, count):
            together = any(order[upper] in group and order[lower] in group for group in groups)
            assert together or (order[upper], order[lower]) in told_apart
    assert not any(set(one) < set(other) for one in groups for other in groups)
