import random
import string


class Robot:
    used = set()

    def __init__(self):
        self._name = None

    @property
    def name(self):
        while self._name is None or (self._name in Robot.used and self._new):
            self._name = "".join(random.choices(string.ascii_uppercase, k=2)) + f"{random.randrange(1000):03}"
            self._new = True
        Robot.used.add(self._name)
        self._new = False
        return self._name

    def reset(self):
        self._name = None
