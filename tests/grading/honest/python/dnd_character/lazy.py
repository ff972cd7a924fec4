import math
import random
from functools import cached_property


def modifier(score):
    return math.floor((score - 10) / 2)


class Character:
    @cached_property
    def strength(self):
        return self.ability()

    @cached_property
    def constitution(self):
        return self.ability()

    @property
    def hitpoints(self):
        return modifier(self.constitution) + 10

    def ability(self):
        dice = [random.choice("123456") for _ in range(4)]
        print(dice)
        return sum(map(int, dice)) - min(map(int, dice))
