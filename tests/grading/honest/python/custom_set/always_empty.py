"""Wrong: a stub that answers some tests by chance."""


class CustomSet:
    def __init__(self, elements=()):
        pass

    def isempty(self):
        return True

    def __contains__(self, element):
        return True

    def issubset(self, other):
        return True

    def __eq__(self, other):
        return isinstance(other, CustomSet)

    __hash__ = None

    def add(self, element):
        pass

    def intersection(self, other):
        return self

    def __add__(self, other):
        return other
