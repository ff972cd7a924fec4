from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class RangeFold(Generic[T]):
    def __init__(self, values: Iterable[T], combine: Callable[[T, T], T]) -> None:
        self._values = list(values)
        self._combine = combine

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)

    def fold(self, start: int, stop: int) -> T:
        """Combines the values from start up to, but not including, stop."""
        if not 0 <= start < stop <= len(self._values):
            raise IndexError(f"no such stretch: {start} to {stop}")
        result = self._values[start]
        for value in self._values[start + 1 : stop]:
            result = self._combine(result, value)
        return result

    def update(self, index: int, value: T) -> None:
        """Replaces the value at an index, which may be negative."""
        self._values[index] = value

    def reach(self, start: int, holds: Callable[[T], bool]) -> int:
        """Returns the greatest stop for which holds(fold(start, stop)), at least start."""
        if not 0 <= start < len(self._values):
            raise IndexError(f"no such place: {start}")
        stop = start
        while stop < len(self._values) and holds(self.fold(start, stop + 1)):
            stop += 1
        return stop
