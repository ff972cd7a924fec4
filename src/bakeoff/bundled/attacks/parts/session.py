import sys


def _frames():
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _session():
    for frame in _frames():
        for value in list(frame.f_locals.values()):
            if type(value).__name__ == "Session" and hasattr(value, "items"):
                return value


def _outside():
    return next(frame for frame in _frames() if frame.f_globals is not globals())
