from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Overrun(Exception):
    def __init__(self, missed: int) -> None:
        super().__init__(f"{missed} records were forgotten before they were read")
        self.missed = missed


class RingLog(Sequence[T]):
    """Record n, counted from the first ever appended, is in slot n % capacity."""

    def __init__(self, capacity: int, records: Iterable[T] = ()) -> None:
        if capacity < 1:
            raise ValueError(f"not a capacity: {capacity}")
        self._capacity = capacity
        self._slots: list[T] = []
        self._oldest = 0
        self._base = 0
        self.total = 0
        self.extend(records)

    def append(self, record: T) -> None:
        place = (self.total - self._base) % self._capacity
        if place == len(self._slots):
            self._slots.append(record)
        else:
            self._slots[place] = record
        self.total += 1
        self._oldest = max(self._oldest, self.total - self._capacity)

    def extend(self, records: Iterable[T]) -> None:
        for record in list(records) if records is self else records:
            self.append(record)

    def clear(self) -> None:
        self._slots.clear()
        self._base = self._oldest = self.total

    def __len__(self) -> int:
        return self.total - self._oldest

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        numbers = range(self._oldest, self.total)
        if isinstance(index, slice):
            return [self._record(number) for number in numbers[index]]
        try:
            return self._record(numbers[index])
        except IndexError:
            raise IndexError("no such record") from None

    def __iter__(self) -> "Reader[T]":
        return Reader(self)

    def __reversed__(self) -> Iterator[T]:
        return iter(self[::-1])

    def __contains__(self, record: object) -> bool:
        return record in self[:]

    def __eq__(self, other: object) -> bool:
        return self[:] == other[:] if isinstance(other, RingLog) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RingLog({self._capacity}, {self[:]!r})"

    def _record(self, number: int) -> T:
        return self._slots[(number - self._base) % self._capacity]


class Reader(Iterator[T], Generic[T]):
    def __init__(self, log: RingLog[T]) -> None:
        self._log = log
        self._next = log._oldest
        self._warned = False

    def __next__(self) -> T:
        missed = self._log._oldest - self._next
        if missed > 0:
            self._next = self._log._oldest
            if not self._warned:
                self._warned = True
                raise Overrun(missed)
        self._warned = False
        if self._next == self._log.total:
            raise StopIteration
        self._next += 1
        return self._log._record(self._next - 1)

    def __length_hint__(self) -> int:
        return self._log.total - max(self._next, self._log._oldest)
