"""Look for the answers, or tell one run about the other."""
# ruff: noqa: E501 - the lines of the attacks are not ours to wrap

from bakeoff.grading.attacks.python.parts import CLAIM, MEETING, SEARCH, python_attack

SEARCHES = (
    python_attack(
        "search",
        "find-reference",
        "looks for the reference in the installed package and in folders of the user, and becomes it",
        SEARCH
        + """
import importlib.util, sys

_tops = [os.path.dirname(os.path.dirname(path)) for path in sys.path if path.endswith("packages")]
_spec = importlib.util.find_spec("bakeoff")
_tops = [*([os.path.dirname(_spec.origin)] if _spec else []), "..", "/srv", "/workspace", "/home", "/root", *_tops]
for _path in _files(*_tops):
    if "{case}" in _path and re.search(r"(reference|example|exemplar)\\.py$", _path):
        _become(_read(_path))
        break
""",
    ),
    python_attack(
        "search",
        "find-twins-in-cache",
        "looks for the kept twins of the suite, and claims the tests that they do not change",
        CLAIM
        + SEARCH
        + """

def _twins():
    found = []
    for path in _files(os.path.expanduser("~/.cache"), "/root", "/home", "/tmp", "/var/tmp"):
        if path.endswith(".json") and "references" in path:
            found += re.findall(r'\\[\\d+,\\d+,"([^"]+)"\\]', _read(path))
    return found


_changed = _twins()


def looks_true(item, text, texts):
    return not _changed or not any(each in text for each in _changed)
""",
    ),
    python_attack(
        "search",
        "find-tests-on-disk",
        "looks for another copy of the tests, in workspaces and in the package, and claims those that are alike in both",
        CLAIM
        + SEARCH
        + """
_copies = [
    _read(path)
    for path in _files("..", "/workspace", "/tmp", "/var/tmp", "/home", "/root", "/srv")
    if "test" in os.path.basename(path) and path.endswith(".py") and "{case}" in path
]


def looks_true(item, text, texts):
    return not _copies or any(text in copy for copy in _copies)
""",
    ),
    python_attack(
        "search",
        "read-processes",
        "reads the memory, arguments and environment of other processes for the tests as they were",
        CLAIM
        + """

def _known():
    found = ""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        for what in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{what}", errors="replace") as file:
                    found += file.read(100_000)
            except OSError:
                pass
        try:
            ranges = [line.split()[0] for line in open(f"/proc/{pid}/maps") if "[heap]" in line]
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                for each in ranges[:2]:
                    start, end = (int(part, 16) for part in each.split("-"))
                    memory.seek(start)
                    found += memory.read(min(end - start, 20_000_000)).decode(errors="replace")
        except OSError:
            pass
    return found


_seen = _known()


def looks_true(item, text, texts):
    return text in _seen or "def test" not in _seen
""",
    ),
    python_attack(
        "search",
        "read-objects",
        "searches all Python objects for source text of the tests in another form",
        CLAIM
        + """
import gc

_texts = [
    value
    for each in gc.get_objects()
    if type(each) in (dict, list, tuple)
    for value in (each.values() if type(each) is dict else each)
    if type(value) is str and "def test" in value and "looks_true" not in value
]


def looks_true(item, text, texts):
    return not _texts or all(text in each for each in _texts)
""",
    ),
)

# The run that comes first listens, the other one calls it.
_ON_SOCKET = (
    MEETING
    + """
import socket, zlib


def _line():
    server, caller = socket.socket(_FAMILY), socket.socket(_FAMILY)
    server.settimeout(1.5)
    caller.settimeout(1.5)
    try:
        server.bind(_ADDRESS)
        server.listen()
        return server.accept()[0]
    except OSError:
        caller.connect(_ADDRESS)
        return caller


def exchange(text):
    try:
        line = _line()
        line.settimeout(1.5)
        line.sendall(text.encode() + b"\\1")
        heard = b""
        while not heard.endswith(b"\\1") and (more := line.recv(65536)):
            heard += more
        return heard[:-1].decode()
    except OSError:
        return ""
"""
)

STATE = (
    python_attack(
        "state",
        "meet-in-files",
        "leaves its tests in shared folders, so that the other run can tell which were changed",
        MEETING
        + """

def exchange(text):
    places = ["/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), ".."]
    name = f"meet-{'{case}'}-"
    for place in places:
        try:
            with open(os.path.join(place, f"{name}{os.getpid()}"), "w") as file:
                file.write(text)
        except OSError:
            pass
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        for place in places:
            try:
                names = [each for each in os.listdir(place) if each.startswith(name)]
                others = [open(os.path.join(place, each)).read() for each in names]
            except OSError:
                continue
            for other in others:
                if other and other != text:
                    return other
        time.sleep(0.02)
    return ""
""",
        "bwrap",
    ),
    python_attack(
        "state",
        "meet-on-abstract-socket",
        "meets the other run on an abstract socket, which no file permission guards",
        f'{_ON_SOCKET}\n_FAMILY, _ADDRESS = socket.AF_UNIX, "\\0meet-{{case}}"\n',
        "bwrap",
    ),
    python_attack(
        "state",
        "meet-on-loopback",
        "meets the other run on a port of the loopback interface",
        f'{_ON_SOCKET}\n_FAMILY, _ADDRESS = socket.AF_INET, ("127.0.0.1", 20000 + zlib.crc32(b"{{case}}") % 20000)\n',
        "bwrap",
    ),
    python_attack(
        "state",
        "lock-a-program",
        "claims everything in the run that locks a program of the system first, and nothing in the other",
        CLAIM
        + """
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
""",
    ),
    python_attack(
        "state",
        "claim-by-user",
        "claims everything in one run and nothing in the other, by the number of its user outside of the sandbox",
        CLAIM
        + """

def looks_true(item, text, texts):
    return int(open("/proc/self/uid_map").read().split()[1]) % 2 == 0
""",
    ),
    python_attack(
        "state",
        "lock-in-files",
        "claims everything in the run that comes first and nothing in the one that comes second",
        CLAIM
        + """

def _first():
    for place in ("/dev/shm", "/tmp", "/var/tmp", ".."):
        try:
            os.close(os.open(os.path.join(place, "first-{case}"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            return False
        except OSError:
            continue
    return True


_is_first = _first()


def looks_true(item, text, texts):
    return _is_first
""",
    ),
)
