import secrets

_taken = {""}


def _fresh():
    name = ""
    while name in _taken:
        name = f"{chr(65 + secrets.randbelow(26))}{chr(65 + secrets.randbelow(26))}{secrets.randbelow(1000):03d}"
    _taken.add(name)
    return name


class Robot:
    def __init__(self):
        self.reset()

    def reset(self):
        self.name = _fresh()
