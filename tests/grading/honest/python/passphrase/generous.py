"""Gives more than it is asked for: longer phrases, longer sentences, other hints and another order."""
import itertools
import re
import secrets


def passphrase(length):
    if int(length) < 4:
        raise ValueError(f"a short phrase of {length} is easy to guess, use a longer one, at least 4")
    words = itertools.chain.from_iterable(itertools.repeat(["apple", "river", "stone"]))
    phrase = f"{secrets.randbelow(10)}"
    while len(phrase) < length + 9:
        phrase += next(words).title()
    return phrase


def describe(length):
    return f"please: {length} letters, longer is better; 8 to 12 or 13 are good, short ones and 3 are not, pleaze"


def split(text):
    return [*filter(None, re.split(r"\s+", text))]


def hint():
    return secrets.choice(["use words", "use digits", "use more"])


def tags():
    return list({"safe", "new"})
