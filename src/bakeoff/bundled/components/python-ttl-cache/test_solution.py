import pytest
from solution import Cache


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_the_least_recently_used_entry_makes_room(clock):
    cache = Cache(2, clock=clock)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.keys() == ["a", "c"]
    cache.put("a", 10)
    assert cache.keys() == ["c", "a"]
    assert (cache.get("a"), cache.get("b"), cache.get("b", "none")) == (10, None, "none")
    assert cache.stats() == {"hits": 2, "misses": 2, "evictions": 1, "expirations": 0}


def test_looking_without_getting_changes_nothing(clock):
    cache = Cache(2, clock=clock)
    cache.put("a", 1)
    cache.put("b", 2)
    assert "a" in cache
    assert "z" not in cache
    assert len(cache) == 2
    assert cache.keys() == ["a", "b"]
    cache.put("c", 3)
    assert "a" not in cache
    assert cache.stats() == {"hits": 0, "misses": 0, "evictions": 1, "expirations": 0}


def test_an_entry_ends_exactly_at_its_age_and_getting_it_does_not_help(clock):
    cache = Cache(3, ttl=10, clock=clock)
    cache.put("a", 1)
    clock.now += 9.5
    assert cache.get("a") == 1
    clock.now += 0.5
    assert "a" not in cache
    assert len(cache) == 0
    assert cache.get("a", "gone") == "gone"
    assert cache.delete("a") is False
    assert cache.stats() == {"hits": 1, "misses": 1, "evictions": 0, "expirations": 1}


def test_a_put_starts_a_new_life_with_a_ttl_of_its_own(clock):
    cache = Cache(4, ttl=10, clock=clock)
    cache.put("short", 1, ttl=2)
    cache.put("ever", 2, ttl=None)
    cache.put("own", 3)
    clock.now += 9
    cache.put("own", 4)
    clock.now += 9
    assert cache.keys() == ["ever", "own"]
    cache.put("ever", 5)
    clock.now += 10
    assert cache.keys() == []
    assert cache.stats()["expirations"] == 3


def test_the_expired_go_before_the_living(clock):
    cache = Cache(3, clock=clock)
    cache.put("old", 1)
    cache.put("brief", 2, ttl=1)
    cache.put("blink", 3, ttl=1)
    clock.now += 1
    cache.put("new", 4)
    assert cache.keys() == ["old", "new"]
    assert cache.stats() == {"hits": 0, "misses": 0, "evictions": 0, "expirations": 2}


def test_every_expiry_is_counted_once_whoever_finds_it(clock):
    cache = Cache(5, ttl=5, clock=clock)
    for key in "abcde":
        cache.put(key, key)
    clock.now += 5
    assert cache.stats()["expirations"] == 5
    cache.put("a", "again")
    assert cache.delete("b") is False
    assert cache.get("c") is None
    assert len(cache) == 1
    assert cache.stats() == {"hits": 0, "misses": 1, "evictions": 0, "expirations": 5}
    assert cache.delete("a") is True
    assert cache.delete("a") is False
    assert cache.stats()["expirations"] == 5


def test_nothing_is_a_value_like_any_other(clock):
    cache = Cache(2, clock=clock)
    cache.put(None, None)
    cache.put((1, 2), 0)
    assert None in cache
    assert cache.get(None, "default") is None
    assert cache.get((1, 2), "default") == 0
    assert cache.stats()["hits"] == 2
    assert cache.delete(None) is True


def test_bad_numbers_are_refused_and_change_nothing(clock):
    for arguments in [{"capacity": 0}, {"capacity": -1}, {"capacity": 1, "ttl": 0}, {"capacity": 1, "ttl": -2}]:
        with pytest.raises(ValueError, match=r"^"):
            Cache(**arguments, clock=clock)
    cache = Cache(1, clock=clock)
    cache.put("a", 1)
    for ttl in (0, -1):
        for key in ("a", "b"):
            with pytest.raises(ValueError, match=r"^"):
                cache.put(key, 2, ttl=ttl)
    assert cache.keys() == ["a"]
    assert cache.get("a") == 1
