class SpaceAge:
    EARTH = 31557600.0

    def __init__(self, seconds):
        self.seconds = seconds

    def on_earth(self):
        return round(self.seconds / self.EARTH, 2)

    def on_mercury(self):
        return round(self.seconds / self.EARTH / 0.2408467, 2)


def approximate_pi(terms):
    return 4 * sum((-1) ** k / (2 * k + 1) for k in range(terms))


def years_between(start, end):
    return (end - start) / SpaceAge.EARTH
