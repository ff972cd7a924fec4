from itertools import product

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_names = ("".join(pair) + f"{number:03}" for pair in product(_LETTERS, repeat=2) for number in range(1000))


class Robot:
    def __init__(self):
        self.name = next(_names)

    def reset(self):
        self.name = next(_names)
