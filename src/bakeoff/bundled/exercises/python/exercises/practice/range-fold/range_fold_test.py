import random
from math import ceil, log2

import pytest
from range_fold import RangeFold


class Counter:
    """A function that counts how often it is called."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.function(*arguments)


def join(left: str, right: str) -> str:
    assert isinstance(left, str)
    assert isinstance(right, str)
    assert left and right
    return left + right


def letters(count: int, seed: int = 1) -> list[str]:
    source = random.Random(seed)
    return [source.choice("abcdefghij") for _ in range(count)]


def test_a_stretch_is_folded_in_order():
    row = RangeFold("hello", join)
    assert row.fold(0, 5) == "hello"
    assert row.fold(1, 3) == "el"
    assert row.fold(4, 5) == "o"


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 33])
def test_every_stretch_is_right_before_and_after_updates(count):
    values = letters(count)
    row = RangeFold(iter(values), join)
    for index in range(0, count, 3):
        row.update(index, "XY")
        values[index] = "XY"
        assert list(row) == values
        for start in range(count):
            for stop in range(start + 1, count + 1):
                assert row.fold(start, stop) == "".join(values[start:stop])


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 2), (-1, 2), (0, 6), (5, 6), (-3, -1)])
def test_what_is_no_stretch_is_an_error(start, stop):
    with pytest.raises(IndexError):
        RangeFold("hello", join).fold(start, stop)


def test_places_may_be_counted_from_the_end():
    row = RangeFold("hello", join)
    row.update(-1, "!")
    row.update(-5, "J")
    assert "".join(row) == "Jell!"
    for index in (5, -6):
        with pytest.raises(IndexError):
            row.update(index, "x")
    assert row.fold(0, 5) == "Jell!"


def test_it_may_be_empty():
    row = RangeFold([], join)
    assert len(row) == 0
    assert list(row) == []
    with pytest.raises(IndexError):
        row.fold(0, 0)
    with pytest.raises(IndexError):
        row.reach(0, lambda _: True)
    with pytest.raises(IndexError):
        row.update(0, "x")


def test_it_keeps_nothing_of_the_row_it_was_given():
    values = ["a", "b"]
    row = RangeFold(values, join)
    values[0] = "z"
    row.update(1, "c")
    assert (values, row.fold(0, 2), len(row)) == (["z", "b"], "ac", 2)


def test_values_may_be_none_or_false():
    row = RangeFold([None, 0, None], lambda left, right: (left, right))
    assert row.fold(0, 1) is None
    assert row.fold(0, 2) == (None, 0)
    row.update(1, None)
    assert row.fold(1, 3) == (None, None)


def test_reach_goes_as_far_as_it_holds():
    row = RangeFold("hello", join)
    assert row.reach(0, lambda text: len(text) <= 3) == 3
    assert row.reach(2, lambda text: "o" not in text) == 4
    assert row.reach(1, lambda text: text.startswith("e")) == 5
    assert row.reach(1, lambda text: False) == 1
    for start in (-1, 5):
        with pytest.raises(IndexError):
            row.reach(start, lambda _: True)


@pytest.mark.parametrize(("count", "total"), [(1, 2), (2, 12), (3, 35), (5, 140), (8, 520), (13, 2080), (33, 31570)])
def test_reach_is_right_from_everywhere(count, total):
    row = RangeFold(letters(count), join)
    reached = 0
    for start in range(count):
        for length in range(count + 2):
            expected = min(count, start + length)
            reach = row.reach(start, lambda text, length=length: len(text) <= length)
            assert reach == expected
            reached += reach
    assert reached == total


@pytest.mark.parametrize("count", [1000, 1024, 1025])
def test_making_it_stays_within_the_bound(count):
    combine = Counter(join)
    RangeFold(letters(count), combine)
    assert combine.calls <= count


@pytest.mark.parametrize("count", [1000, 1024, 1025])
def test_fold_and_update_stay_within_their_bounds(count):
    combine = Counter(join)
    row = RangeFold(letters(count), combine)
    source = random.Random(2)
    bound = ceil(log2(count))
    stretches = [sorted(source.sample(range(count + 1), 2)) for _ in range(200)]
    for start, stop in [*stretches, [0, count], [1, count - 1], [1, count]]:
        combine.calls = 0
        row.update(source.randrange(count), source.choice("klmn"))
        assert combine.calls <= bound
        combine.calls = 0
        row.fold(start, stop)
        assert combine.calls <= 2 * bound


@pytest.mark.parametrize("count", [1000, 1024, 1025])
def test_reach_stays_within_its_bounds(count):
    combine = Counter(join)
    row = RangeFold(letters(count), combine)
    source = random.Random(3)
    bound = ceil(log2(count))
    for start, length in [
        (0, count),
        (0, count - 1),
        (1, count),
        (1, 0),
        *((source.randrange(count), source.randrange(count)) for _ in range(200)),
    ]:
        holds = Counter(lambda text, length=length: len(text) <= length)
        combine.calls = 0
        assert row.reach(start, holds) == min(count, start + length)
        assert combine.calls <= 2 * bound
        assert holds.calls <= 2 * bound + 1
