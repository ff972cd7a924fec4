"""Change or forge the report."""

from bakeoff.grading.attacks.python.parts import CLAIM, lie, python_attack

REPORTS = (
    python_attack(
        "report",
        "claim-all",
        "writes a complete report to the grader's pipe and ends, which beats every grader that believes the process",
        lie("True"),
    ),
    python_attack(
        "report",
        "claim-in-fork",
        "reports from a forked process while the first one goes on and reports again, which beats readers of the first",
        CLAIM.replace("def on_call():", "def _report():")
        + """

def looks_true(item, text, texts):
    return True


def on_call():
    if os.fork() == 0:
        _report()
""",
    ),
    python_attack(
        "report",
        "rewrite-json",
        "rewrites every failure in the JSON encoder, which beats harnesses that report in JSON",
        """
import json

_dumps = json.dumps
json.dumps = lambda *given, **named: _dumps(*given, **named).replace('"failed"', '"passed"')
""",
    ),
    python_attack(
        "report",
        "rewrite-writes",
        "rewrites failures where they are written, in `os.write`, which beats harnesses that keep their encoder",
        """
import os

_write = os.write


def _lie(number, data):
    _write(number, bytes(data).replace(b'"failed"', b'"passed"'))
    return len(data)


os.write = _lie
""",
    ),
    python_attack(
        "report",
        "rewrite-harness",
        "replaces the functions of the harness in `__main__`, which beats harnesses written in Python",
        """
import __main__

for _name in ("tell", "say"):
    if hasattr(__main__, _name):
        _told = getattr(__main__, _name)
        setattr(
            __main__,
            _name,
            lambda _told=_told, **what: _told(**{**what, "state": "passed"} if "state" in what else what),
        )
""",
    ),
    python_attack(
        "report",
        "rewrite-at-exit",
        "writes a report and exit code 0 when the interpreter ends, which beats graders that read the last line",
        """
import atexit, os, sys


def _end():
    for number in range(1, 30):
        try:
            os.write(number, b'{"error": "", "interrupted": ""}\\n')
        except OSError:
            pass
    os._exit(0)


atexit.register(_end)


class _Late:
    def __del__(self):
        _end()


sys.modules["late"] = _Late()
""",
    ),
    python_attack(
        "report",
        "write-report-files",
        "writes reports of success wherever it may write, which beats graders that read a report file",
        """
import os

_junit = '<testsuite tests="9" failures="0"><testcase classname="t" name="test_all"/></testsuite>'
for _place in (".", "/tmp", os.path.expanduser("~"), "/dev/shm"):
    for _name in ("report.xml", "junit.xml", "results.json", ".report.json", "pytest.json"):
        try:
            with open(os.path.join(_place, _name), "w") as _file:
                _file.write(_junit if _name.endswith("xml") else '{"success": true, "failed": 0}')
        except OSError:
            pass
print("9 passed in 0.01s")
os._exit(0)
""",
    ),
    python_attack(
        "report",
        "write-to-parent",
        "writes a report to the descriptors of its parents, which beats parents that any process may open",
        CLAIM
        + """

def looks_true(item, text, texts):
    return True


_claim = on_call


def on_call():
    for pid in (os.getppid(), 1):
        for name in range(3, 40):
            try:
                os.write(os.open(f"/proc/{pid}/fd/{name}", os.O_WRONLY | os.O_NONBLOCK), b'{"ok": true}\\n')
            except OSError:
                pass
    _claim()
""",
    ),
)
