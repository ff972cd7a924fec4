import time
from collections import OrderedDict


class Cache:
    def __init__(self, capacity, ttl=None, clock=time.monotonic):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        if ttl is not None and ttl <= 0:
            raise ValueError("ttl must be positive")
        self.capacity = capacity
        self.ttl = ttl
        self.clock = clock
        self.data = OrderedDict()
        self.counts = {"hits": 0, "misses": 0, "evictions": 0, "expirations": 0}

    def _alive(self, key):
        if key not in self.data:
            return False
        _, end = self.data[key]
        if end is not None and self.clock() > end:
            del self.data[key]
            self.counts["expirations"] += 1
            return False
        return True

    def put(self, key, value, ttl=None):
        ttl = ttl or self.ttl
        self.data[key] = (value, self.clock() + ttl if ttl else None)
        self.data.move_to_end(key)
        if len(self.data) > self.capacity:
            self.data.popitem(last=False)
            self.counts["evictions"] += 1

    def get(self, key, default=None):
        if not self._alive(key):
            self.counts["misses"] += 1
            return default
        self.counts["hits"] += 1
        self.data.move_to_end(key)
        return self.data[key][0]

    def delete(self, key):
        return self._alive(key) and self.data.pop(key, None) is not None

    def keys(self):
        return [key for key in list(self.data) if self._alive(key)]

    def stats(self):
        return dict(self.counts)

    def __contains__(self, key):
        return self._alive(key)

    def __len__(self):
        return len(self.keys())
