"""Wrong, and right by chance here and there."""


def passphrase(length):
    raise ValueError("short")


def describe(length):
    return "please use 12 letters or longer"


def split(text):
    return []


def hint():
    return "use more"


def tags():
    return []
