"""A cache that keeps the most recently used entries, each for a limited time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

OWN_TTL: Any = object()


class Cache:
    def __init__(self, capacity: int, ttl: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        _check_ttl(ttl)
        self._capacity = capacity
        self._ttl = ttl
        self._clock = clock
        # key: (value, moment of its end or None), the least recently used first
        self._entries: OrderedDict[Hashable, tuple[Any, float | None]] = OrderedDict()
        self._counts = {"hits": 0, "misses": 0, "evictions": 0, "expirations": 0}

    def put(self, key: Hashable, value: Any, ttl: float | None = OWN_TTL) -> None:
        lifetime = self._ttl if ttl is OWN_TTL else ttl
        _check_ttl(lifetime)
        now = self._expire()
        if key not in self._entries and len(self._entries) >= self._capacity:
            self._entries.popitem(last=False)
            self._counts["evictions"] += 1
        self._entries[key] = (value, None if lifetime is None else now + lifetime)
        self._entries.move_to_end(key)

    def get(self, key: Hashable, default: Any = None) -> Any:
        self._expire()
        if key not in self._entries:
            self._counts["misses"] += 1
            return default
        self._counts["hits"] += 1
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def delete(self, key: Hashable) -> bool:
        self._expire()
        return self._entries.pop(key, None) is not None

    def keys(self) -> list[Hashable]:
        self._expire()
        return list(self._entries)

    def stats(self) -> dict[str, int]:
        self._expire()
        return dict(self._counts)

    def __contains__(self, key: Hashable) -> bool:
        self._expire()
        return key in self._entries

    def __len__(self) -> int:
        self._expire()
        return len(self._entries)

    def _expire(self) -> float:
        now = self._clock()
        ended = [key for key, (_, end) in self._entries.items() if end is not None and end <= now]
        for key in ended:
            del self._entries[key]
        self._counts["expirations"] += len(ended)
        return now


def _check_ttl(ttl: float | None) -> None:
    if ttl is not None and ttl <= 0:
        raise ValueError(f"ttl must be more than 0, not {ttl}")
