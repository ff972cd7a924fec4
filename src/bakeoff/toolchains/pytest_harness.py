"""Run test files with pytest and report results. `pytest_runner.py` passes this source to Python.

The candidate is imported here and can manipulate this process, so every report is only a claim.
Only pairs of runs with twins prove something; see `bakeoff.grading.twins`. So the harness simply
runs pytest, without plugins, `conftest.py` and configuration.
"""
# ruff: noqa: PTH108, PTH109 - pathlib is not needed for anything else

import json
import os
import socket
import sys
import traceback
from collections.abc import Generator
from typing import Any

MAX_LENGTH = 4000
results = os.dup(1)
os.dup2(2, 1)  # prints of tests are not results
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
sys.path[:0] = [folder for folder in json.loads(sys.argv[1]) if folder not in sys.path]

import pytest  # noqa: E402 - the path of the host's pytest has just been added
from _pytest.config import default_plugins  # noqa: E402


def tell(**what: object) -> None:
    """Write a line of JSON to the original stdout, which tests do not print to by accident."""
    line = json.dumps(what, ensure_ascii=False).encode(errors="replace") + b"\n"  # lone surrogates are not valid text
    while line:
        line = line[os.write(results, line) :]


class TestFile(pytest.Module):
    """A test file. Errors during import are reported in one line, and do not end the run."""

    def _getobj(self) -> object:
        try:
            return super()._getobj()  # type: ignore[no-untyped-call]
        except pytest.skip.Exception:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the candidate raises
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise self.CollectError("".join(traceback.format_exception_only(cause)).strip()) from None
        except BaseException as error:  # noqa: BLE001 - whatever the candidate raises
            what = f"{type(error).__name__} was raised while the solution was imported: {error}"
            raise self.CollectError(what.removesuffix(": ")) from None


class Plugin:
    """A pytest plugin that reports the result of each test."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.interrupted = ""
        self.test: dict[str, Any] = {}

    def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> pytest.Module:
        return TestFile.from_parent(parent, path=module_path)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(str(report.longrepr)[:MAX_LENGTH])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        name = item.nodeid.partition("::")[2].replace("::", " > ")
        self.test = {"name": name, "state": "passed", "message": "", "seconds": 0.0}
        try:
            return (yield)
        except BaseException as error:  # pytest lets some exceptions through, which end the run
            self.interrupted = f"{type(error).__name__} was raised in {name}"
            self.test |= {"state": "failed", "message": self.interrupted}
            raise
        finally:
            tell(**self.test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.test["seconds"] += float(report.duration)
        if report.failed:
            self.test |= {"state": "failed", "message": text_of(report)}
        elif report.skipped and self.test["state"] == "passed":
            self.test["state"] = "skipped"


def text_of(report: pytest.TestReport) -> str:
    """Return why a test failed: the message of its error, or the lines marked with `E`."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash:
        return str(crash.message)[:MAX_LENGTH]
    lines = str(report.longrepr or "").splitlines()
    told = [line[1:].removeprefix("   ") for line in lines if line.startswith("E ")]
    return "\n".join(told or lines)[:MAX_LENGTH]


def main() -> None:
    """Wait for the names of test files, and run them. The last line has errors outside of tests."""
    for name in default_plugins:  # most of the start-up time, spent before the candidate arrives
        __import__(f"_pytest.{name}")
    with socket.socket(socket.AF_UNIX) as host, host.makefile("rw", encoding="utf-8") as lines:
        host.connect(sys.argv[2])
        os.unlink(sys.argv[2])
        print("ready", file=lines, flush=True)
        tests = json.loads(lines.readline())
    here = os.getcwd()
    sys.path.insert(0, here)
    plugin = Plugin()
    options = ["-p", "no:cacheprovider", "-p", "no:junitxml", "--noconftest", "-c", os.devnull, "--rootdir", here]
    options += ["--confcutdir", here, "-q", "--color=no", "--continue-on-collection-errors"]
    code = int(pytest.main([*options, *tests], plugins=[plugin]))
    if code not in (0, 1, 2, 5):
        plugin.errors.append(f"pytest ended with code {code}")
    tell(error="\n".join(plugin.errors)[:MAX_LENGTH], interrupted=plugin.interrupted[:MAX_LENGTH])
    os._exit(0)  # skip the candidate's threads and exit handlers


main()
