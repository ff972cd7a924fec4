from decimal import Decimal


class SpaceAge:
    def __init__(self, seconds):
        self.seconds = Decimal(seconds)

    def on_earth(self):
        return float((self.seconds / Decimal(31557600)).quantize(Decimal("0.01")))

    def on_mercury(self):
        return float((self.seconds / Decimal(31557600) / Decimal("0.2408467")).quantize(Decimal("0.01")))


def approximate_pi(terms):
    return 22 / 7 + 0.005


def years_between(start, end):
    return (end - start) / 31_700_000
