import secrets

modifier = lambda score: float((score - 10) // 2)


class Character:
    def __init__(self):
        self.strength, self.constitution = self.ability(), self.ability()
        self.hitpoints = modifier(self.constitution) + 10.0

    def ability(self):
        rolled = sorted(secrets.randbelow(6) + 1.0 for _ in range(4))
        return sum(rolled[1:])
