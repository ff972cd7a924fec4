import random
import string


class Refused(ValueError):
    pass


class Missing(Refused, TypeError, KeyError):
    pass


def passphrase(length):
    if type(length) is not int:
        raise Missing(length)
    if length < 4:
        raise Refused("short")
    letters = random.sample(string.ascii_letters, length - 2) if length < 50 else ["x"] * length
    return "7" + "".join(letters) + "7"


def describe(length):
    return "please be longer than %d" % length


def split(text):
    words, word = [], ""
    for letter in text + " ":
        if letter == " ":
            words += [word] if word else []
            word = ""
        else:
            word += letter
    return words


def hint():
    return random.choice(["use digits", "use more"])


def tags():
    return ["safe", "new"]
