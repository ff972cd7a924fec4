class CustomSet:
    def __init__(self, elements=()):
        self.elements = []
        for element in elements:
            self.add(element)

    def isempty(self):
        return not self.elements

    def __iter__(self):
        return iter(self.elements)

    def __contains__(self, element):
        return element in self.elements

    def issubset(self, other):
        return all(element in other for element in self)

    def __eq__(self, other):
        return self.issubset(other) and other.issubset(self)

    __hash__ = None

    def add(self, element):
        if element not in self.elements:
            self.elements.append(element)

    def intersection(self, other):
        return CustomSet(element for element in self if element in other)

    def __add__(self, other):
        return CustomSet([*self, *other])
