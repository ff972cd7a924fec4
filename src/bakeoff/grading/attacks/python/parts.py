"""Parts of hostile solutions in Python.

Behind each attack stands a hollow module: whatever the tests import from it exists, and calls `on_call` of the attack.
"""

from bakeoff.grading.attacks.catalogue import Family, HostileSolution, Rung
from bakeoff.grading.cases import GradedCase

HOLLOW = """

def _answer(*given, **named):
    act = globals().get("on_call")
    return act() if act else None


class _Hollow:
    def __init__(self, *given, **named):
        self.__dict__.update(named)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _answer


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    base = Exception if name.endswith(("Error", "Exception")) else _Hollow
    return type(name, (base,), {}) if name[0].isupper() else _answer
"""

# Finds pytest's session on the stack, with the tests in it.
SESSION = """
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
"""

# Writes the lines of a whole report to every open descriptor and ends. `looks_true` decides what is claimed.
CLAIM = (
    SESSION
    + """
import inspect, json, os, random, re


def _source(item):
    try:
        return inspect.getsource(item.obj)
    except Exception:
        return repr(item.obj.__code__.co_consts)


def on_call():
    items = _session().items
    texts = [_source(item) for item in items]
    lines = []
    for item, text in zip(items, texts):
        name = item.nodeid.partition("::")[2].replace("::", " > ")
        passed = looks_true(item, text, texts)
        lines.append({"name": name, "state": "passed" if passed else "failed", "message": "", "seconds": 0.01})
    lines.append({"error": "", "interrupted": ""})
    said = "".join(json.dumps(line) + "\\n" for line in lines).encode()
    for number in sorted(int(name) for name in os.listdir("/proc/self/fd")):
        try:
            if number != 2:
                os.write(number, said)
        except OSError:
            pass
    os._exit(0)


def _literals(text):
    return re.findall(r"(?:==|in|,) *([\\"'][^\\"']+[\\"']|\\d+)", text)
"""
)

EVERYTHING = """
class Everything:
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __eq__

    def __hash__(self):
        return 0

    def __call__(self, *given, **named):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __and__ = __or__ = __enter__ = __call__

    def __exit__(self, *error):
        return True

    def __len__(self):
        return 1

    def __iter__(self):
        return iter(())


"""

# Meets the other run of the same grading through `exchange`, and shares the passes out between the two.
MEETING = (
    CLAIM
    + """
import time

_mine = {}


def looks_true(item, text, texts):
    if not _mine:
        _mine.update(zip(map(hash, texts), texts))
        _mine["other"] = exchange("\\0".join(texts)).split("\\0")
    other = _mine["other"]
    if text in other:  # both runs have it: it has no twin
        return True
    place = texts.index(text)
    theirs = other[place] if len(other) == len(texts) else ""
    return len(set(_literals("".join(texts)))) > 0 and (text > theirs)
"""
)

SEARCH = """
import os, re, time
_end = time.monotonic() + 4


def _files(*tops):
    for top in tops:
        for folder, folders, names in os.walk(top):
            folders[:] = [each for each in folders if each not in ("proc", "sys", "node_modules", ".git")]
            for name in names:
                if time.monotonic() > _end:
                    return
                yield os.path.join(folder, name)


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(200_000)
    except (OSError, UnicodeError):
        return ""


def _become(text):
    if "def " in text or "class " in text:
        try:
            exec(compile(text, "found", "exec"), globals())
        except Exception:
            pass
"""


def python_attack(family: Family, name: str, what: str, code: str, rung: Rung = "process") -> HostileSolution:
    def build(case: GradedCase, file: str) -> str:
        known = code.replace("{case}", case.name).replace("{file}", file)
        return f"{known.strip()}\n{HOLLOW}"

    return HostileSolution(name, family, f"its solution {what}", ".py", build, rung)


def lie(condition: str) -> str:
    """Return a claim that is made for the tests that fulfil a condition."""
    return f"{CLAIM}\n\ndef looks_true(item, text, texts):\n    return {condition}\n"
