from collections.abc import Iterator, Sequence
from operator import length_hint

import pytest
from ring_log import Overrun, RingLog


def test_it_keeps_the_last_records():
    log = RingLog(3)
    for record in "abcde":
        log.append(record)
    assert list(log) == ["c", "d", "e"]
    assert (len(log), log.total) == (3, 5)


def test_it_is_a_sequence():
    log = RingLog(4, "xabca")
    assert isinstance(log, Sequence)
    assert (log[0], log[3], log[-1], log[-4]) == ("a", "a", "a", "a")
    assert (log[1], log[-2]) == ("b", "c")
    assert ("c" in log, "x" in log, None in log) == (True, False, False)
    assert (log.index("a"), log.index("a", 1), log.count("a")) == (0, 3, 2)
    for index in (4, -5):
        with pytest.raises(IndexError):
            log[index]
    with pytest.raises(ValueError):
        log.index("x")


def test_slices_are_lists():
    log = RingLog(5, range(8))
    assert log[:] == [3, 4, 5, 6, 7]
    assert log[1:-1] == [4, 5, 6]
    assert log[::-2] == [7, 5, 3]
    assert log[9:] == []
    assert type(log[:]) is list


@pytest.mark.parametrize("capacity", [0, -1])
def test_it_keeps_at_least_one_record(capacity):
    with pytest.raises(ValueError):
        RingLog(capacity)


def test_equality_is_about_records():
    assert RingLog(3, "abcd") == RingLog(9, "bcd")
    assert RingLog(3, "ab") != RingLog(3, "ba")
    assert RingLog(3, "ab") != ["a", "b"]
    with pytest.raises(TypeError):
        hash(RingLog(3))


def test_it_shows_itself():
    log = RingLog(3, ["a", "b"])
    assert repr(log) == "RingLog(3, ['a', 'b'])"


def test_clearing_forgets_but_goes_on_counting():
    log = RingLog(3, "abcd")
    log.clear()
    assert (list(log), len(log), log.total) == ([], 0, 4)
    log.extend("vwxyz")
    assert (log[:], log.total) == (["x", "y", "z"], 9)
    with pytest.raises(IndexError):
        RingLog(2)[0]


def test_it_may_be_extended_by_itself():
    log = RingLog(4, "abc")
    log.extend(log)
    assert (log[:], log.total) == (["c", "a", "b", "c"], 6)


def test_a_reader_sees_what_comes_later_and_is_never_used_up():
    log = RingLog(3, "ab")
    reader = iter(log)
    assert isinstance(reader, Iterator)
    assert iter(reader) is reader
    assert next(reader) == "a"
    log.append("c")
    assert list(reader) == ["b", "c"]
    with pytest.raises(StopIteration):
        next(reader)
    log.append("d")
    assert list(reader) == ["d"]


def test_a_reader_that_is_too_slow_is_told_what_it_missed():
    log = RingLog(3, "abc")
    reader = iter(log)
    assert next(reader) == "a"
    log.extend("de")
    with pytest.raises(Overrun) as caught:
        next(reader)
    assert caught.value.missed == 1
    assert list(reader) == ["c", "d", "e"]


def test_a_reader_that_lost_nothing_it_needed_is_not_disturbed():
    log = RingLog(3, "abc")
    reader = iter(log)
    next(reader)
    next(reader)
    log.extend("de")
    assert list(reader) == ["c", "d", "e"]
    log.clear()
    assert list(reader) == []


def test_after_a_warning_it_goes_on_with_the_oldest_record_of_then():
    log = RingLog(2, "ab")
    reader = iter(log)
    log.extend("cde")
    with pytest.raises(Overrun) as caught:
        next(reader)
    assert caught.value.missed == 3
    log.extend("fgh")
    assert next(reader) == "g"
    log.extend("ijk")
    with pytest.raises(Overrun) as caught:
        next(reader)
    assert caught.value.missed == 2
    assert list(reader) == ["j", "k"]


def test_clearing_is_forgetting_too():
    log = RingLog(3, "abc")
    reader = iter(log)
    next(reader)
    log.clear()
    log.append("x")
    with pytest.raises(Overrun) as caught:
        next(reader)
    assert caught.value.missed == 2
    assert list(reader) == ["x"]


def test_readers_do_not_disturb_each_other_and_say_how_much_is_left():
    log = RingLog(3, "abc")
    one, other = iter(log), iter(log)
    next(one)
    assert (length_hint(one), length_hint(other)) == (2, 3)
    log.extend("de")
    assert (length_hint(one), length_hint(other)) == (3, 3)
    log.clear()
    assert length_hint(other) == 0


def test_backwards_it_shows_one_moment():
    log = RingLog(3, "abc")
    backwards = reversed(log)
    assert next(backwards) == "c"
    log.extend("xyz")
    assert list(backwards) == ["b", "a"]
