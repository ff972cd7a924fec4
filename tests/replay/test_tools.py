"""`@replayable`: local tools are called once, and replayed as answers of models are."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bakeoff import replayable
from bakeoff.errors import InfraError, UsageError
from bakeoff.replay.application import ReplayRound

from .conftest import SECRET, Replay


@dataclass
class Point:
    x: int


class City(BaseModel):
    name: str


calls: list[Any] = []


@pytest.fixture(autouse=True)
def none_made() -> None:
    calls.clear()


@replayable
def add(a: int, b: int = 1, *rest: int, **named: Any) -> int:
    """The sum."""
    calls.append((a, b))
    return a + b


@replayable(version=1)
async def look(place: str) -> list[Point]:
    calls.append(place)
    await asyncio.sleep(0)
    return [Point(len(place))]


@replayable
def city(name: str) -> City:
    return City(name=name)


@replayable
def say(what: Any):
    calls.append(what)
    return what() if callable(what) else what


def test_without_replay_the_function_is_what_it_was() -> None:
    assert (add(1), add(1)) == (2, 2)
    assert (len(calls), add.__name__, add.__doc__) == (2, "add", "The sum.")


def test_a_tool_is_called_once_and_then_replayed(replay: Replay) -> None:
    with replay("auto"):
        assert (add(2, b=3), add(a=2, b=3), add(2, 3)) == (5, 5, 5)
    assert calls == [(2, 3)]
    with replay("strict"):
        assert add(2, 3) == 5
    assert calls == [(2, 3)]


def test_defaults_are_part_of_the_question(replay: Replay) -> None:
    with replay("auto"):
        assert add(2) == add(2, 1) == 3
    assert calls == [(2, 1)]


async def test_an_async_tool_gives_back_the_objects_of_its_annotation(replay: Replay) -> None:
    for mode in ("auto", "strict"):
        with replay(mode):
            assert await look("Paris") == [Point(5)]
    assert calls == ["Paris"]


def test_a_model_comes_back_as_a_model(replay: Replay) -> None:
    for mode in ("record", "strict"):
        with replay(mode):
            assert city("Paris") == City(name="Paris")


def test_another_version_is_another_tool(replay: Replay) -> None:
    with replay("record"):
        asyncio.run(look("Paris"))
    newer = replayable(version=2)(look.__wrapped__)  # type: ignore[attr-defined]
    with replay("strict"), pytest.raises(InfraError, match="nothing is recorded"):
        asyncio.run(newer("Paris"))


def test_record_calls_again(replay: Replay) -> None:
    with replay("record"):
        add(1)
        add(1)
    assert len(calls) == 2


def test_a_strict_miss_names_the_key_the_tool_and_the_nearest_recording(replay: Replay) -> None:
    with replay("record"):
        add(1)
    with replay("strict"), pytest.raises(InfraError) as raised:
        add(2)
    message = str(raised.value)
    assert "nothing is recorded under " in message
    assert "add)" in message
    assert '-  "a": 1,' in message
    assert '+  "a": 2,' in message
    assert len(calls) == 1


def test_a_strict_miss_with_no_recording_at_all_says_how_to_make_one(replay: Replay) -> None:
    with replay("strict"), pytest.raises(InfraError, match="--eval-replay=auto"):
        add(1)


def test_what_a_tool_raises_is_not_recorded_and_is_tried_again(
    replay: Replay, recordings: Callable[[], list[Path]]
) -> None:
    with replay("auto"), ReplayRound(0):
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                say(lambda: 1 / 0)
    assert (len(calls), recordings()) == (2, [])


def test_the_same_question_within_a_round_has_answers_in_their_order(replay: Replay) -> None:
    numbers = iter(range(10))

    @replayable
    def count() -> int:
        return next(numbers)

    def rounds() -> list[int]:
        found = []
        for number in range(2):
            with ReplayRound(number):
                found += [count(), count()]
        return found

    with replay("auto"):
        assert rounds() == [0, 1, 2, 3]
    with replay("strict"):
        assert rounds() == [0, 1, 2, 3]


def test_a_miss_that_the_application_swallowed_is_still_the_cases_error(replay: Replay) -> None:
    def careless() -> str:
        try:
            return str(add(1))
        except InfraError:
            return "0"

    with replay("strict"), pytest.raises(InfraError, match="nothing is recorded"), ReplayRound(0):
        careless()


@pytest.mark.parametrize("result", [(1, 2), {1}, object(), {1: 2}, float("nan"), lambda: 1, "\ud800"])
def test_a_result_that_json_does_not_give_back_is_refused_with_a_way_out(replay: Replay, result: Any) -> None:
    with replay("record"), pytest.raises(UsageError, match=r"say returned a \w+ that JSON does not preserve.*annotate"):
        say(lambda: result)


@pytest.mark.parametrize("result", [None, 1, 0.5, "é", True, [1, {"a": None}], {"a": [1]}], ids=repr)
def test_plain_results_need_no_annotation(replay: Replay, result: Any) -> None:
    for mode in ("record", "strict"):
        with replay(mode):
            assert say(result) == result


def test_an_argument_that_is_no_data_is_known_by_its_kind(replay: Replay) -> None:
    for mode in ("auto", "strict"):
        with replay(mode):
            assert say(lambda: 4) == 4
    assert len(calls) == 1


def test_a_method_is_asked_without_its_object(replay: Replay) -> None:
    class Shop:
        @replayable
        def price(self, of: str) -> int:
            calls.append(of)
            return len(of)

    for mode in ("auto", "strict"):
        with replay(mode):
            assert Shop().price("tea") == 3
    assert calls == ["tea"]


def test_generators_are_refused_where_they_are_decorated() -> None:
    with pytest.raises(UsageError, match="numbers is a generator"):

        @replayable
        def numbers() -> Any:
            yield 1


def test_no_secret_is_written(replay: Replay, recordings: Callable[[], list[Path]]) -> None:
    with replay("record"):
        say({"key": SECRET, "said": [f"my key is {SECRET}"]})
    [path] = recordings()
    assert SECRET not in path.read_text()
    assert "[redacted MY_KEY]" in path.read_text()


@replayable
def fetch(page: str, api_key: str, options: dict[str, Any]) -> str:
    calls.append(page)
    return f"{page} for {api_key} and {options['access_token']}"


def test_a_key_that_a_tool_is_given_is_in_no_recording_and_the_call_is_found_again(
    replay: Replay, recordings: Callable[[], list[Path]]
) -> None:
    given = ("p1", "tool-key-77aa31c9", {"access_token": "tool-token-08fe21d6"})
    with replay("record"):
        assert fetch(*given) == "p1 for tool-key-77aa31c9 and tool-token-08fe21d6"
    [kept] = recordings()
    assert "tool-key" not in kept.read_text()
    assert "tool-token" not in kept.read_text()
    with replay("strict"):
        assert fetch(*given).startswith("p1 for ")
        assert fetch("p1", "key-of-a-colleague", {"access_token": "token-of-a-colleague"}).startswith("p1 for ")
        with pytest.raises(InfraError, match="nothing is recorded"):
            fetch("p2", *given[1:])
    assert calls == ["p1"]


def test_wrong_arguments_are_the_callers_error_as_ever(replay: Replay) -> None:
    with replay("auto"), pytest.raises(TypeError, match="missing a required argument: 'a'"):
        add()  # type: ignore[call-arg]


def test_threads_may_record_the_same_at_the_same_time(replay: Replay, recordings: Callable[[], list[Path]]) -> None:
    together = threading.Barrier(8)

    def ask(number: int) -> int:
        together.wait(30)
        return add(number % 2, 1)

    with replay("auto"), ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(ask, range(8))) == [1] * 4 + [2] * 4
    assert len(recordings()) == 2


class Missing(LookupError):
    """Raised with more than a text."""

    def __init__(self, name: str, code: int = 404) -> None:
        super().__init__(name, code)


@replayable(errors=LookupError)
def find(name: str) -> str:
    calls.append(name)
    if name == "nobody":
        raise Missing(name, 410)
    if name == "broken":
        raise OSError("no disk")
    return name.upper()


def test_errors_that_are_asked_for_are_recorded_and_raised_again(replay: Replay) -> None:
    for mode in ("auto", "strict"):
        with replay(mode), pytest.raises(Missing) as caught:
            find("nobody")
        assert caught.value.args == ("nobody", 410)
    with replay("auto"):
        for _ in range(2):
            with pytest.raises(OSError, match="no disk"):
                find("broken")
    assert calls == ["nobody", "broken", "broken"]


@replayable(key=lambda question, session: question.lower(), sanitize=lambda found: {**found, "email": "…"})
def profile(question: str, session: str) -> dict[str, str]:
    calls.append(session)
    return {"name": "Ada", "email": "ada@example.com", "session": "s"}


def test_a_key_chooses_what_finds_a_recording_and_sanitize_what_is_in_it(
    replay: Replay, recordings: Callable[[], list[Path]]
) -> None:
    with replay("auto"):
        assert profile("Who?", "token-1")["email"] == "ada@example.com"
    with replay("strict"):
        assert profile("WHO?", "token-2") == {"name": "Ada", "email": "…", "session": "s"}
    assert calls == ["token-1"]
    [recording] = recordings()
    assert "ada@example.com" not in recording.read_text()
    assert "token-1" not in recording.read_text()
