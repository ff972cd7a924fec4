"""What is remembered of the answers, and what is not."""

import json
from pathlib import Path

import pytest

from bakeoff.cli.wizard import LastAnswers, answers_file, recall, remember
from bakeoff.doors.components.plan import ComponentsRequest


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def remembered_of(*mcp: str) -> tuple[str, ...]:
    remember(ComponentsRequest(models=("nop",), mcp=mcp), 2)
    return recall().mcp


def test_what_was_remembered_comes_back_and_nobody_else_can_read_it() -> None:
    remember(ComponentsRequest(models=("oracle", "a/b"), pricing=False, test_tool=False), 7)
    assert recall() == LastAnswers(models=("oracle", "a/b"), pricing=False, mcp=("none",), test_tool=False, jobs=7)
    assert answers_file().stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("none", "none"),
        ("http", "http"),
        ("stdio", "stdio"),
        ("stdio:npx -y 'some server'", "stdio:npx -y 'some server'"),
        ("http + stdio:python3 srv.py", "http + stdio:python3 srv.py"),
        ("http:https://me:hunter2hunter2@host/mcp?token=hunter2hunter2#x", "http:https://host/mcp"),
        ("https://host/mcp?key=hunter2hunter2", "http:https://host/mcp"),
    ],
)
def test_an_address_is_remembered_without_what_may_be_secret(typed: str, kept: str) -> None:
    assert remembered_of(typed) == (kept,)
    assert "hunter2" not in answers_file().read_text()


@pytest.mark.parametrize(
    "command",
    [
        "srv --api-key hunter2hunter2",
        "srv --token=hunter2hunter2",
        "env SECRET=hunter2hunter2 srv",
        "npx mcp-remote https://host/mcp?k=hunter2hunter2",
        "npx mcp-remote https://host/mcp --header 'Authorization: Bearer hunter2hunter2'",
        "srv from-the-environment-1234",
    ],
)
def test_a_command_that_tells_a_secret_is_not_remembered(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "from-the-environment-1234")
    assert remembered_of("none", f"http + stdio:{command}", "http") == ("none", "http")
    assert "hunter2" not in answers_file().read_text()
    assert "from-the-environment" not in answers_file().read_text()


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"models": "nop"}',
        b'{"models": ["\\u001b[31m"]}',
        b'{"jobs": 0}',
        b'{"models": ["' + b"x" * 100_000 + b'"]}',
    ],
)
def test_a_damaged_file_is_ignored_with_a_word_and_replaced(damaged: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    answers_file().parent.mkdir(parents=True)
    answers_file().write_bytes(damaged)
    assert recall() == LastAnswers()
    assert capsys.readouterr().err == f"{answers_file()} cannot be read: the last answers are ignored\n"
    remember(ComponentsRequest(models=("nop",)), 1)
    assert recall().models == ("nop",)


def test_a_newer_versions_file_serves_as_far_as_it_is_understood() -> None:
    answers_file().parent.mkdir(parents=True)
    answers_file().write_text(json.dumps({"jobs": 3, "colour": "blue"}))
    assert recall() == LastAnswers(jobs=3)


def test_a_folder_that_cannot_be_written_costs_a_word_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    remember(ComponentsRequest(models=("nop",)), 1)
    assert capsys.readouterr().err.startswith("the answers cannot be saved in")


@pytest.mark.parametrize("chosen", ["", "relative/folder"])
def test_without_a_folder_of_settings_it_is_the_usual_one(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", chosen)
    monkeypatch.setenv("HOME", "/home/user")
    monkeypatch.chdir("/usr")
    here = answers_file()
    assert here.parent == Path("/home/user/.config/bakeoff")
    monkeypatch.chdir("/tmp")
    assert answers_file() != here, "each project has its own"
