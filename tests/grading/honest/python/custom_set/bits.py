class CustomSet:
    def __init__(self, elements=(), bits=0):
        self.bits = bits
        for element in elements:
            self.add(element)

    def isempty(self):
        return self.bits == 0

    def __contains__(self, element):
        return bool(self.bits >> element & 1)

    def issubset(self, other):
        return self.bits | other.bits == other.bits

    def __eq__(self, other):
        return isinstance(other, CustomSet) and not self.bits ^ other.bits

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def add(self, element):
        self.bits |= 1 << element

    def intersection(self, other):
        return CustomSet(bits=self.bits & other.bits)

    def __add__(self, other):
        return CustomSet(bits=self.bits | other.bits)
