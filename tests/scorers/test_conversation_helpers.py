"""Test what custom scorers are given: turns of a conversation by role, and blank expected answers."""

import asyncio

import pytest

from bakeoff import ScoreInput
from bakeoff.errors import GraderError
from bakeoff.scorers import Factuality, turns_of


def test_turns_are_found_by_role() -> None:
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "ai", "content": "Hi"},
        {"role": "user", "content": "2+2?"},
    ]
    given = ScoreInput.of("4", input="2+2?", messages=messages)
    assert [turn.text for turn in turns_of(given, "user")] == ["Hello", "2+2?"]
    assert [turn.text for turn in turns_of(given, "assistant")] == ["Hi", "4"]
    assert len(turns_of(given)) == 4


@pytest.mark.parametrize("blank", ["", " \n"])
def test_facts_are_not_compared_with_a_blank_answer(blank: str) -> None:
    with pytest.raises(GraderError, match="`expected` is blank: write the facts"):
        asyncio.run(Factuality(model="house:nobody")(ScoreInput.of("Paris", input="?", expected=blank)))
