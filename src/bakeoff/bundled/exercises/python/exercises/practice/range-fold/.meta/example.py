from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

NOTHING: Any = object()


class RangeFold(Generic[T]):
    """A complete binary tree in a list: the children of node i are 2i and 2i + 1, the values are its last level."""

    def __init__(self, values: Iterable[T], combine: Callable[[T, T], T]) -> None:
        row = list(values)
        self._combine = combine
        self._count = len(row)
        self._size = 1
        while self._size < len(row):
            self._size *= 2
        self._tree: list[T] = [NOTHING] * self._size + row + [NOTHING] * (self._size - len(row))
        for node in range(self._size - 1, 0, -1):
            self._tree[node] = self._join(self._tree[2 * node], self._tree[2 * node + 1])

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        for index in range(self._count):
            yield self._tree[self._size + index]

    def fold(self, start: int, stop: int) -> T:
        """Combines the values from start up to, but not including, stop."""
        if not 0 <= start < stop <= self._count:
            raise IndexError(f"no such stretch: {start} to {stop}")
        left, right = NOTHING, NOTHING
        low, high = self._size + start, self._size + stop
        while low < high:
            if low & 1:
                left = self._join(left, self._tree[low])
                low += 1
            if high & 1:
                high -= 1
                right = self._join(self._tree[high], right)
            low, high = low // 2, high // 2
        result: T = self._join(left, right)
        return result

    def update(self, index: int, value: T) -> None:
        """Replaces the value at an index, which may be negative."""
        place = range(self._count)[index]
        node = self._size + place
        self._tree[node] = value
        while node > 1:
            node //= 2
            self._tree[node] = self._join(self._tree[2 * node], self._tree[2 * node + 1])

    def reach(self, start: int, holds: Callable[[T], bool]) -> int:
        """Returns the greatest stop for which holds(fold(start, stop)), at least start."""
        if not 0 <= start < self._count:
            raise IndexError(f"no such place: {start}")
        node, so_far = self._size + start, NOTHING
        while True:
            while node % 2 == 0:
                node //= 2
            longer = self._join(so_far, self._tree[node])
            if self._tree[node] is not NOTHING and not holds(longer):
                return self._descend(node, so_far, holds)
            so_far = longer
            node += 1
            if node & (node - 1) == 0:
                return self._count

    def _descend(self, node: int, so_far: T, holds: Callable[[T], bool]) -> int:
        while node < self._size:
            node *= 2
            longer = self._join(so_far, self._tree[node])
            if holds(longer):
                so_far = longer
                node += 1
        return node - self._size

    def _join(self, left: T, right: T) -> T:
        if left is NOTHING:
            return right
        return left if right is NOTHING else self._combine(left, right)
