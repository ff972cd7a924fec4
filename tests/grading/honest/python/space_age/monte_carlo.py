"""Other ways to pi and to years: an integral, and a year of 365.2425 days."""
import math


class SpaceAge:
    def __init__(self, seconds):
        self.seconds = seconds

    def __getattr__(self, name):
        period = {"on_earth": 1.0, "on_mercury": 0.2408467}[name]
        return lambda: math.floor(self.seconds / (31557600 * period) * 100 + 0.5) / 100


def approximate_pi(terms):
    return sum(4 / (1 + ((i + 0.5) / terms) ** 2) for i in range(terms)) / terms


def years_between(start, end):
    return (end - start) / (365.2425 * 86400)
