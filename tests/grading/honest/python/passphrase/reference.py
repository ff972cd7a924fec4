import random

WORDS = ["apple", "river", "stone", "cloud"]


def passphrase(length):
    if not isinstance(length, int):
        raise TypeError("a length is a number")
    if length < 4:
        raise ValueError("too short")
    return "".join(random.choice("abcdefgh") for _ in range(length - 1)) + random.choice("0123456789")


def describe(length):
    return f"please use {length} letters or longer"


def split(text):
    return text.split()


def hint():
    return "use words"


def tags():
    return ["new", "safe"]
