"""Test what a model meant by its reply, however it put it."""

import json

import pytest

from bakeoff.scorers.mcp.calls import read_reply

CALL = {"serverName": "s", "toolName": "t", "parameters": {"a": 1}}
TEXT = json.dumps(CALL)


@pytest.mark.parametrize(
    ("text", "manner"),
    [
        (TEXT, "bare"),
        (f"\n {json.dumps(CALL, indent=2)} \n", "bare"),
        (f"```json\n{TEXT}\n```", "fenced"),
        (f"Here you are:\n```\n{TEXT}\n```\nAnything else?", "fenced"),
        (f"I would call {TEXT} for that.", "surrounded"),
        (f'<think>maybe {{"toolName": "other"}}</think>\n{TEXT}', "bare_after_thought"),
        (f"{TEXT}\n{TEXT}", "surrounded"),
        (f"{{not json}} and then {TEXT}", "surrounded"),
        (json.dumps({**CALL, "why": "it fits"}), "bare"),
    ],
)
def test_a_call_is_understood_and_its_manner_is_told(text: str, manner: str) -> None:
    reply = read_reply(text)
    assert [call.model_dump() for call in reply.calls] == [CALL]
    assert reply.problem == ""
    assert reply.form == ("surrounded" if manner == "bare_after_thought" else manner)


def test_a_list_is_a_sequence_of_calls() -> None:
    reply = read_reply(json.dumps([CALL, {**CALL, "toolName": "u"}]))
    assert [call.toolName for call in reply.calls] == ["t", "u"]


@pytest.mark.parametrize("text", ["null", "[]", "```json\nnull\n```"])
def test_null_calls_nothing(text: str) -> None:
    reply = read_reply(text)
    assert (reply.calls, reply.problem) == ((), "")


def test_words_alone_call_nothing_and_are_told_as_prose() -> None:
    reply = read_reply("Hello! How can I help?")
    assert (reply.calls, reply.problem, reply.form) == ((), "", "prose")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ('"toolName"', "a text, not an object"),
        ("42", "a number, not an object"),
        ('{"toolName": "t"}', "no 'serverName'"),
        ('{"serverName": "s"}', "no 'toolName'"),
        ('{"serverName": 1, "toolName": "t"}', "serverName is 1, not a text"),
        ('{"serverName": "s", "toolName": null}', "toolName is None"),
        ('{"serverName": "s", "toolName": "t", "parameters": [1]}', "parameters is list"),
        ('{"serverName": "s", "toolName": "t", "parameters": {"a": NaN}}', "not valid JSON"),
        ('{"serverName": "s", "toolName": "t", "parameters": {', "not valid JSON"),
        (f"{TEXT} or {TEXT.replace('1', '2')}", "2 different calls"),
        ("[[1]]", "not an object"),
        ("[" * 100_000 + "toolName", "not valid JSON"),
        ("{" * 100_000 + '"toolName"', "not valid JSON"),
        (TEXT.replace("1", "1e999"), "a number that is too large"),
        (TEXT.replace("1", "-1e999"), "a number that is too large"),
        (TEXT.replace("1", '{"b":' * 300 + "1" + "}" * 300), "nested more than 64 levels deep"),
        (TEXT.replace("1", "9" * 5_000), "not valid JSON"),
        ("```json\n" + " " * 900_000 + "toolName", "not valid JSON"),
    ],
)
def test_a_wrong_shape_is_a_reason_and_never_a_crash(text: str, problem: str) -> None:
    reply = read_reply(text)
    assert problem in reply.problem


@pytest.mark.parametrize("text", [f"```json\n{TEXT}\n```", f"Sure: {TEXT}", "no JSON at all"])
def test_strict_json_refuses_anything_around_it(text: str) -> None:
    assert "strictJson" in read_reply(text, strict=True).problem
    assert read_reply(TEXT, strict=True).problem == ""
