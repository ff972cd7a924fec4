"""Random in name only, which the tests allow."""


def modifier(score):
    return score // 2 - 5


class Character:
    strength = constitution = 12
    hitpoints = 11

    def ability(self):
        return 12
