"""All names, shuffled once when the module is imported."""
from random import Random

print("warming up the robots")
_all = [f"{a}{b}{n:03}" for a in "QWERTZ" for b in "ASDFGH" for n in range(1000)]
Random().shuffle(_all)


class Robot:
    def __init__(self):
        self.reset()

    def reset(self):
        self.name = _all.pop()
