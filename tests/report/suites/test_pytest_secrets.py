"""Keys in what pytest itself prints and writes: none may be readable."""

import pytest
from tests.report.suites.sessions import REAL, run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("neutral_environment")

KEY = "sk-Zq8Wv3Lp0Xn5Rt7Yb2Kd9Mf4"
TESTS = """
import logging, os, sys, warnings
import pytest
from bakeoff import describe_eval

KEY = os.environ["MY_API_KEY"]
test_suite = describe_eval("suite", data=[{"input": KEY, "name": KEY}], task=str, scorers=[lambda given: 0.0])

@pytest.fixture
def broken():
    raise RuntimeError(KEY)

@pytest.mark.parametrize("key", [KEY], ids=[KEY.upper()])
def test_fails(key, record_property):
    letters = list(key)
    print(key, "\\n".join(key))
    print(key, file=sys.stderr)
    logging.error("logged %s", key)
    warnings.warn("warned of " + key)
    record_property("key", key)
    assert {"a": key} == {"a": " ".join(key)}

def test_breaks(broken): pass
def test_skips(): pytest.skip(KEY)
@pytest.mark.xfail(reason=KEY)
def test_is_expected_to_fail(): assert KEY == 1
def test_passes(): print(KEY)
"""


def readable(text: str) -> bool:
    folded = "".join(filter(str.isalnum, text)).lower()
    return "zq8wv3lp0xn5rt7y" in folded


@pytest.mark.parametrize("options", ["-v -rA -l", "-p xdist -n1 -v", "--tb=native", "--tb=line -q"])
def test_a_key_is_in_nothing_that_pytest_prints_or_writes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    told = run(
        pytester,
        *options.split(),
        "--junitxml=j.xml",
        "-ojunit_family=legacy",
        "--log-file=l.txt",
        test=TESTS,
        plugin=REAL,
    )
    assert told.parseoutcomes()["failed"] == 2
    printed = "\n".join((*told.outlines, *told.errlines))
    assert "[redacted MY_API_KEY]" in printed
    assert not readable(printed)
    for name in ("j.xml", "l.txt"):
        written = (pytester.path / name).read_text()
        assert not readable(written)
    assert "[redacted MY_API_KEY]" in (pytester.path / "j.xml").read_text()


def test_a_session_without_evals_is_left_alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    pytester.makepyfile("import os\ndef test_it(): assert os.environ['MY_API_KEY'] == 1")
    told = pytester.runpytest_subprocess()
    assert readable(told.stdout.str())
