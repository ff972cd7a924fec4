"""Runs one test file with pytest, in the candidate's sandbox; read by `pytests.py` and given to Python as text.

The job comes on the input, and the test file goes to a folder of its own: once pytest has read it, and that is before
the candidate is imported, changing it changes nothing. The canary is in no file at all. The result goes to a copy of
the output that nothing else writes to.
"""
# ruff: noqa: E402, PTH109, PTH118, PTH119, PTH123

import builtins
import json
import os
import sys
import tempfile
from typing import Any

job = json.load(sys.stdin)
answers = os.dup(1)
os.dup2(2, 1)
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what else is installed beside pytest is none of a suite's business
sys.path[:0] = [folder for folder in job["folders"] if folder not in sys.path]

import pytest

_write, _dumps, _exit = os.write, json.dumps, os._exit
_builtins = dict(vars(builtins))


class Plugin:
    """Adds the canary, and notes how every test went."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.errors: list[str] = []

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        if not items:
            return
        word, other = job["word"], job["word"] + "!"

        def canary() -> None:
            __tracebackhide__ = True
            with pytest.raises(AssertionError):
                assert [word] == [other]
            pytest.fail(word)

        made = pytest.Function.from_parent(session, name=job["canary"], callobj=canary)
        items.insert(int(job["place"] * (len(items) + 1)), made)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(text_of(report))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = name_of(report.nodeid)
        known = self.tests.setdefault(name, {"name": name, "state": "passed", "message": "", "seconds": 0.0})
        known["seconds"] += report.duration
        if report.failed:
            known["state"], known["message"] = "failed", text_of(report)
        elif report.skipped and known["state"] == "passed":
            known["state"] = "skipped"


def name_of(nodeid: str) -> str:
    """`test_x.py::TestA::test_b[1]` is `TestA > test_b[1]`."""
    head, _, tail = nodeid.partition("::")
    return tail.replace("::", " > ") or head


def text_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash:
        return str(crash.message)[:4000]
    lines = str(report.longrepr or "").splitlines()
    told = [line[1:].removeprefix("   ") for line in lines if line.startswith("E ")]
    return "\n".join(told or lines)[:4000]


def changed() -> str | None:
    """What of the built-in names was replaced."""
    now = vars(builtins)
    return next((name for name, value in _builtins.items() if now.get(name) is not value and name != "_"), None)


def main(proof: str, file_name: str, source: str) -> None:
    work = os.getcwd()
    private = tempfile.mkdtemp()
    path = os.path.join(private, os.path.basename(file_name))
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    sys.path.insert(0, work)
    plugin = Plugin()
    options = ["-p", "no:cacheprovider", "-p", "no:junitxml", "--noconftest", "-c", os.devnull, "--rootdir", private]
    options += ["--confcutdir", private]
    code = pytest.main([*options, "-q", "--color=no", "--import-mode=importlib", path], plugins=[plugin])
    if int(code) not in (0, 1, 2, 5):
        plugin.errors.append(f"pytest ended with code {int(code)}")
    result = {"tests": list(plugin.tests.values()), "error": "\n".join(plugin.errors), "changed": changed()}
    _write(answers, (proof + _dumps(result)).encode())
    _exit(0)


main(job.pop("proof"), job.pop("file"), job.pop("source"))
