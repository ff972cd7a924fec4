"""Leaderboards that rank no more than the data do."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import compare
from bakeoff.stats.gates import GateVerdict, judge
from bakeoff.stats.ranking import leaderboard, tied_groups

from .simulation import Array, cells_from_passes

unhurried = settings(deadline=None)  # the first call imports scipy


def passes(count: int, cases: int = 100) -> Cells:
    return {CaseKey(str(place)): Cell.of([place < count]) for place in range(cases)}


def graded(values: Array) -> Cells:
    return {CaseKey(str(place)): Cell.of([value]) for place, value in enumerate(np.clip(values, 0, 1).tolist())}


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


def test_equal_scores_keep_their_order_and_are_tied() -> None:
    board = leaderboard({"b": passes(50), "a": passes(50)})
    assert [(row.subject, row.best, row.worst) for row in board] == [("b", 1, 2), ("a", 1, 2)]


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


def test_a_subject_that_can_be_compared_with_nobody_leaves_the_others_their_groups() -> None:
    single = {CaseKey("0"): Cell.of([1])}
    board = leaderboard({"a": passes(95), "b": passes(50), "c": passes(10), "single": single})
    assert [(row.subject, row.best, row.worst, row.groups, row.undefined) for row in board] == [
        ("single", 1, 4, (), True),
        ("a", 1, 1, (1,), False),
        ("b", 2, 2, (2,), False),
        ("c", 3, 3, (3,), False),
    ]


def test_two_that_share_a_single_case_are_alike_and_still_told_apart_from_others() -> None:
    early = {key: cell for key, cell in passes(101, 101).items() if int(key.id) <= 50}
    late = {CaseKey(str(place)): Cell.of([place < 95]) for place in range(50, 101)}
    board = {row.subject: row for row in leaderboard({"early": early, "late": late, "low": passes(0, 101)})}
    assert not any(row.undefined for row in board.values())
    assert (board["early"].groups, board["late"].groups, board["low"].groups) == ((1,), (1,), (2,))
    alone = leaderboard({"early": early, "late": late})
    assert [(row.groups, row.undefined) for row in alone] == [((), True), ((), True)]


def test_the_only_subject_with_an_interval_stands_alone() -> None:
    board = leaderboard({"many": passes(50), "single": {CaseKey("0"): Cell.of([1])}})
    assert [(row.subject, row.groups, row.undefined) for row in board] == [
        ("single", (), True),
        ("many", (1,), False),
    ]


def test_sixty_graded_subjects_are_told_apart_where_every_case_says_so() -> None:
    random = np.random.default_rng(14)
    levels = np.linspace(0.1, 0.9, 60)
    board = leaderboard({f"s{n}": graded(level + random.normal(0, 0.002, 100)) for n, level in enumerate(levels)})
    assert [(row.best, row.worst) for row in board] == [(place, place) for place in range(1, 61)]


def test_a_board_says_of_two_what_their_comparison_says() -> None:
    random = np.random.default_rng(15)
    for shift in (0.0, 0.05, 0.1, 0.15):
        pair = {"a": graded(random.random(60) * 0.8 + shift), "b": graded(random.random(60) * 0.8)}
        better, worse = leaderboard(pair)
        found = compare(pair[worse.subject], pair[better.subject])
        assert (better.groups != worse.groups) == (judge(found).verdict is GateVerdict.IMPROVED)


def test_cases_that_all_changed_in_both_directions_are_no_reversal() -> None:
    better = {CaseKey(str(n)): Cell.of([n < 7]) for n in range(10)}
    worse = {CaseKey(str(n)): Cell.of([n >= 7]) for n in range(10)}
    assert {row.groups for row in leaderboard({"a": better, "b": worse})} == {(1,)}


def test_cases_of_one_cluster_are_one_word_on_a_board_too() -> None:
    def tagged(count: int) -> Cells:
        return {CaseKey(str(n)): Cell.of([n < count], str(n // 10)) for n in range(40)}

    assert {row.groups for row in leaderboard({"a": tagged(39), "b": tagged(0)})} == {(1,)}
    plain = {key: Cell.of([cell.mean]) for key, cell in tagged(0).items()}
    assert {row.groups for row in leaderboard({"a": tagged(39), "b": plain})} == {(1,)}
    assert {row.groups for row in leaderboard({"a": tagged(40), "b": tagged(0)})} == {(1,), (2,)}  # a reversal
    assert [row.groups for row in leaderboard({"a": passes(40, 40), "b": plain})] == [(1,), (2,)]


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
def test_groups_hold_everybody_and_two_share_one_only_if_they_are_not_told_apart(
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
            assert together != ((order[upper], order[lower]) in told_apart)
    assert not any(set(one) < set(other) for one in groups for other in groups)
