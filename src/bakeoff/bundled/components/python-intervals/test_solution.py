import random

import pytest
from solution import gaps, merge, subtract


def integers(intervals):
    return {n for start, end in intervals for n in range(start, end)}


def is_shortest(intervals):
    edges = [edge for pair in intervals for edge in pair]
    return all(type(pair) is tuple for pair in intervals) and edges == sorted(set(edges))


def test_overlapping_touching_and_contained_intervals_become_one():
    assert merge([(5, 7), (1, 3), (3, 4), (6, 6), (5, 6), (10, 20), (12, 13)]) == [(1, 4), (5, 7), (10, 20)]
    assert merge([]) == []
    assert merge([(2, 2), (9, 9)]) == []


def test_any_iterable_is_read_once_and_left_as_it_was():
    given = [[4, 6], [1, 2]]
    assert merge(given) == [(1, 2), (4, 6)]
    assert given == [[4, 6], [1, 2]]
    assert merge(pair for pair in ((1, 2), (2, 3))) == [(1, 3)]
    assert subtract(iter([(0, 10)]), iter([(2, 3), (1, 2)])) == [(0, 1), (3, 10)]
    assert gaps(iter([(0, 1)]), 0, 2) == [(1, 2)]


def test_holes_are_cut_out():
    assert subtract([(0, 10), (20, 30)], [(5, 25)]) == [(0, 5), (25, 30)]
    assert subtract([(0, 10)], [(0, 10)]) == []
    assert subtract([(0, 3), (3, 6)], []) == [(0, 6)]
    assert subtract([(0, 5)], [(3, 3)]) == [(0, 5)]
    assert subtract([(0, 2), (4, 6), (8, 10)], [(1, 9)]) == [(0, 1), (9, 10)]


def test_gaps_lie_within_the_window():
    assert gaps([(2, 4), (6, 8)], 0, 10) == [(0, 2), (4, 6), (8, 10)]
    assert gaps([(-5, 3), (7, 99)], 0, 10) == [(3, 7)]
    assert gaps([(0, 10)], 2, 5) == []
    assert gaps([], 4, 4) == []


def test_a_pair_the_wrong_way_round_is_named():
    calls = [
        lambda: merge([(1, 2), (9, 7)]),
        lambda: subtract([(9, 7)], []),
        lambda: subtract([], [(9, 7)]),
        lambda: gaps([], 9, 7),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"9.*7|7.*9"):
            call()


def test_random_intervals_hold_the_right_integers_in_the_shortest_form():
    rng = random.Random(20)  # noqa: S311
    for _ in range(300):
        some, others = (
            [(start, start + rng.randrange(6)) for start in (rng.randrange(-20, 20) for _ in range(rng.randrange(8)))]
            for _ in range(2)
        )
        merged, left, free = merge(some), subtract(some, others), gaps(some, -10, 10)
        assert is_shortest(merged)
        assert integers(merged) == integers(some)
        assert is_shortest(left)
        assert integers(left) == integers(some) - integers(others)
        assert is_shortest(free)
        assert integers(free) == set(range(-10, 10)) - integers(some)


def test_many_wide_intervals_are_no_trouble():
    wide = 10**12
    many = [(n * wide, n * wide + wide // 2) for n in range(100_000)]
    holes = [(start + 1, end + 1) for start, end in many]
    assert subtract(many, holes) == [(start, start + 1) for start, _ in many]
    assert len(gaps(many, 0, 100_000 * wide)) == 100_000
