"""Everything that can be wrong with a configuration is reported with file, line and key."""

import re
import sys
from pathlib import Path

import pytest

from bakeoff.doors.mcp.api import evaluate
from bakeoff.doors.mcp.config import read_suite
from bakeoff.errors import UsageError

from .config_texts import GOOD, TABLE, changed


@pytest.mark.parametrize("what", TABLE)
def test_a_configuration_that_is_wrong_is_told_with_file_line_key_and_what_would_be_right(read, what: str):
    text, told = TABLE[what]
    with pytest.raises(UsageError) as caught:
        read(text)
    assert told in str(caught.value)
    assert re.search(r"suite\.yaml(:\d+: | )", str(caught.value))
    # Whatever it was, nobody has to know what our checks are made with.
    assert not re.search(r"Input should|Tuple should|valid (string|integer|boolean)|pydantic", str(caught.value))


def test_all_that_is_wrong_is_told_at_once(read):
    text = changed("testRound: 2", "testRound: 0", changed("command:", "comand:")) + "mode: x\n"
    with pytest.raises(UsageError) as caught:
        read(text)
    keys = [re.sub(r".*suite\.yaml:\d+: ", "", line).split(": ")[0] for line in str(caught.value).splitlines()]
    assert keys == ["testRound", "mcpServers[0].comand", "mode"]


def test_a_list_of_one_that_is_wrong_is_not_also_told_to_be_empty(read):
    with pytest.raises(UsageError) as caught:
        read(GOOD + "    args: [1]\n")
    [problem] = str(caught.value).splitlines()
    assert problem.endswith("suite.yaml:13: mcpServers[0].args[0]: 1: has to be a text: put it in quotes")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("testRound: 2", "testRound: 0", "testRound: 0: has to be at least 1"),
        ("city: Oslo", "city: {regex: '('}", "is not a regular expression"),
        ("local:smollm2", "locl:smollm2", "modelsToTest[0]: model 'locl:smollm2': unknown provider 'locl'"),
        ("local:smollm2", "openai:gpt-4o", "suite.yaml:3: modelsToTest[0]: model 'openai:gpt-4o': no key"),
    ],
)
def test_nothing_is_started_while_something_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, told: str
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = f'command: {sys.executable}\n    args: [-c, \'open("started", "w")\']'
    Path("suite.yaml").write_text(changed(old, new, changed("command: weather-server", server)))
    with pytest.raises(UsageError) as caught:
        evaluate("suite.yaml")
    assert told in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["suite.yaml"]


def test_values_that_may_be_secret_are_not_repeated(read):
    text = changed("command: weather-server", "url: http://127.0.0.1/mcp\n    headers: {Authorization: 12345678}")
    with pytest.raises(UsageError, match="Authorization") as caught:
        read(text)
    assert "12345678" not in str(caught.value)
    with pytest.raises(UsageError, match="has both") as caught:
        read(GOOD + "    url: http://127.0.0.1\n    headers: {Authorization: hush-hush}\n")
    assert "hush" not in str(caught.value)


def test_a_file_of_many_megabytes_is_not_read(tmp_path: Path):
    file = tmp_path / "suite.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(17 * 1024 * 1024)
    with pytest.raises(UsageError, match="larger than 16 MB"):
        read_suite(file, {})
