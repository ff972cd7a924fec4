"""Secrets in the files of a session."""

import base64
import gzip
import re

import junitparser
import pytest
from tests.report.suites.sessions import REAL, properties, run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("neutral_environment")


def test_secrets_of_the_environment_are_in_no_file(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value-1234")
    test = """
import os
def test_a(evaluated): evaluated(0.0, input=os.environ["MY_API_KEY"])
"""
    run(pytester, "--eval-json=out.json", "--tb=no", test=test)
    assert "very-secret" not in (pytester.path / "out.json").read_text()


LEAKY = """
import os, pytest
from bakeoff import Score, TaskResult, ToolCall, describe_eval, eval_suite

KEYS = os.environ["MY_API_KEY"] + " " + "sk-of-the-file-98765432"

def tell(given):
    return Score(name="tell", value=0.0, reason=f"it said {KEYS}", metadata={"said": KEYS})

def broken(given):
    raise ValueError(KEYS)

@eval_suite(data=[{"input": KEYS, "name": KEYS, "expected": {KEYS: KEYS}}], scorers=[tell], threshold=0.5)
def test_it(case):
    return TaskResult(result=KEYS, tool_calls=[ToolCall(name="t", arguments={"k": KEYS}, result=[KEYS])])

test_named = describe_eval(KEYS, data=[{"input": "a"}], task=str, scorers=[tell])
test_broken = describe_eval("broken", data=[{"input": "a"}], task=str, scorers=[broken])

async def test_one(to_eval):
    await to_eval(KEYS, output=KEYS, scorer=tell)
"""


def unpacked(text: str) -> str:
    """With what a page holds in packed chunks."""
    chunks = re.findall(r'data-chunk="[^"]+">([^<]+)<', text)
    return text + "".join(gzip.decompress(base64.b64decode(chunk)).decode() for chunk in chunks)


def test_secrets_of_the_environment_and_of_its_file_are_in_no_page_data_or_property(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value-1234")
    (pytester.path / ".env").write_text("OTHER_API_KEY=sk-of-the-file-98765432\n")
    files = ("--eval-json=e.json", "--eval-html=e.html", "--eval-junit", "--junitxml=j.xml")
    told = run(pytester, *files, "--tb=no", "--eval-no-record", test=LEAKY, plugin=REAL)
    assert told.parseoutcomes()["failed"] == 4
    for name in ("e.json", "e.html"):
        written = unpacked((pytester.path / name).read_text())
        assert "it said [redacted" in written
        assert "very-secret" not in written
        assert "of-the-file" not in written
        assert "[redacted MY_API_KEY]" in written
    [found] = junitparser.JUnitXml.fromfile(str(pytester.path / "j.xml"))
    added = str([properties(case) for case in found])
    assert "it said [redacted MY_API_KEY] [redacted OTHER_API_KEY]" in added
    assert "very-secret" not in added
    assert "of-the-file" not in added
