# include: claim

import fcntl

_file = open("/usr/bin/env", "rb")
try:
    fcntl.flock(_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    time_to_meet = __import__("time").sleep(1)
    _is_first = True
except OSError:
    _is_first = False


def looks_true(item, text, texts):
    return _is_first
