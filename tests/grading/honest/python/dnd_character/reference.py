from random import randint


def modifier(constitution):
    return (constitution - 10) // 2


class Character:
    def __init__(self):
        self.strength = self.ability()
        self.constitution = self.ability()
        self.hitpoints = 10 + modifier(self.constitution)

    def ability(self):
        return sum(sorted(randint(1, 6) for _ in range(4))[1:])
