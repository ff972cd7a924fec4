# include: claim

import time

_mine = {}


def looks_true(item, text, texts):
    if not _mine:
        _mine.update(zip(map(hash, texts), texts))
        _mine["other"] = exchange("\0".join(texts)).split("\0")
    other = _mine["other"]
    if text in other:  # both runs have it: it has no twin
        return True
    place = texts.index(text)
    theirs = other[place] if len(other) == len(texts) else ""
    return len(set(_literals("".join(texts)))) > 0 and (text > theirs)
