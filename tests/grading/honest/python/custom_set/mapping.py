from collections.abc import Set


class CustomSet(Set):
    def __init__(self, elements=()):
        self._at = dict.fromkeys(elements)

    def __contains__(self, element):
        return element in self._at

    def __iter__(self):
        yield from self._at

    def __len__(self):
        return len(self._at)

    def isempty(self):
        return len(self) == 0

    def issubset(self, other):
        return self <= other

    def add(self, element):
        self._at[element] = None

    def intersection(self, other):
        return self & other

    __add__ = Set.__or__
