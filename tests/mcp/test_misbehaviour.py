"""Servers that misbehave, and the verdict on each."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest

from bakeoff.errors import InfraError, UsageError
from bakeoff.mcp import OpenHub

from .conftest import Opening, Raw

pytestmark = pytest.mark.full


async def refusal(opened: Opening, *specs: object, **limits: float) -> str:
    with pytest.raises(InfraError) as caught:
        async with opened(*specs, **limits):
            pass
    return str(caught.value)


# --- at start --------------------------------------------------------------------------------------------------


async def test_a_crash_at_start_is_told_with_exit_code_and_last_words_made_harmless(raw: Raw, opened: Opening) -> None:
    said = await refusal(opened, raw("crash", env={"SERVICE_TOKEN": "tok-123456789"}))
    assert "MCP server 'raw'" in said
    assert "exited with code 3" in said
    assert r"\x1b[31mno database" in said
    assert "\x1b" not in said
    assert "tok-123456789" not in said


async def test_a_crash_without_a_word_names_the_signal(raw: Raw, opened: Opening) -> None:
    said = await refusal(opened, raw("crash-silently"))
    assert "ended by signal 6" in said
    assert "wrote nothing to stderr" in said


async def test_a_program_that_is_not_there_is_named(opened: Opening, raw: Raw) -> None:
    said = await refusal(opened, raw(command="no-such-program-here"))
    assert "cannot run 'no-such-program-here'" in said


async def test_a_working_folder_that_is_not_there_is_named(opened: Opening, raw: Raw, tmp_path: Path) -> None:
    assert "no-folder" in await refusal(opened, raw(cwd=tmp_path / "no-folder"))


@pytest.mark.parametrize(
    ("behaviour", "seconds", "sentence"),
    [
        ("hang-initialize", 1, "did not answer the handshake within 1 s"),
        ("hang-list", 6, "did not finish its tool list within 6 s"),  # enough to start a program on a busy machine
    ],
)
async def test_a_server_that_hangs_at_start_is_ended(
    raw: Raw, opened: Opening, behaviour: str, seconds: float, sentence: str
) -> None:
    async with asyncio.timeout(60):
        assert sentence in await refusal(opened, raw(behaviour), startup_seconds=seconds)


async def test_all_failing_servers_are_named_in_one_error(raw: Raw, opened: Opening) -> None:
    said = await refusal(opened, raw("crash", name="one"), raw(name="fine"), raw("duplicate", name="three"))
    assert "'one'" in said
    assert "'three'" in said
    assert "'fine'" not in said


# --- the list of tools -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        ("ten-thousand", "lists more than 1,000 tools"),
        ("cursor-loop", "gave the cursor 'again' twice"),
        ("cursor-new", "more than 1,000 pages"),
        ("list-huge", "tool list has more than 2,000,000 bytes"),
        ("duplicate", "two tools called 'same'"),
        ("name-control", r"called 'bell\x07\x1b[31m', which is not a printable name"),
        ("name-long", "name has 200 characters"),
        ("name-empty", "not a printable name"),
        ("schema-of-string", "tool 'wrong' is described wrongly"),
        ("schema-is-list", "tool 'wrong' is described wrongly"),
        ("schema-missing", "tool 'wrong' is described wrongly"),
        ("schema-invalid", "schema of its tool 'wrong' is not valid JSON Schema: 'objekt'"),
        ("schema-bad-pattern", "schema of its tool 'wrong' is not valid JSON Schema"),
        ("output-schema-invalid", "output schema of its tool 'wrong' is not valid JSON Schema: 'objekt'"),
        ("schema-deep", "schema of its tool 'wrong' is nested more than 64 levels deep"),
        ("schema-very-deep", "Failed to parse its answer"),
        ("schema-huge", "schema of its tool 'wrong' has 250,"),
        ("list-garbage", "Failed to parse its answer"),
    ],
)
async def test_a_tool_list_out_of_bounds_is_refused_with_a_sentence(
    raw: Raw, opened: Opening, behaviour: str, sentence: str
) -> None:
    said = await refusal(opened, raw(behaviour), startup_seconds=60)
    assert "MCP server 'raw'" in said
    assert sentence in said


async def test_a_server_without_tools_is_no_error(raw: Raw, opened: Opening) -> None:
    async with opened(raw("no-tools")) as hub:
        assert await hub.tools() == ()


# --- noise -----------------------------------------------------------------------------------------------------


async def test_noise_on_stdout_is_passed_over(raw: Raw, opened: Opening) -> None:
    async with opened(raw("noise")) as hub:
        assert (await hub.call("raw", "echo", {"text": "still here"})).text == "still here"


async def test_endless_noise_on_stdout_ends_the_server(raw: Raw, opened: Opening) -> None:
    said = await refusal(opened, raw("noise-for-ever"))
    assert "more than 10,000 lines that are not messages" in said
    assert "still starting" in said


async def test_a_flood_on_stderr_neither_blocks_nor_fills_memory(raw: Raw, opened: Opening) -> None:
    async with opened(raw("flood-stderr")) as hub:
        with pytest.raises(InfraError) as caught:
            await hub.call("raw", "die", {})
    lines = re.findall(r"line \d+", str(caught.value))
    assert lines == [f"line {number}" for number in range(199_981, 200_000)]


# --- calls -----------------------------------------------------------------------------------------------------


async def test_an_error_result_is_an_error(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        result = await hub.call("raw", "fail", {})
    assert (result.is_error, result.text) == (True, "no such city")


async def test_an_error_answer_is_an_error_result_that_keeps_its_code(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        result = await hub.call("raw", "reject", {})
    assert (result.is_error, result.code, result.text) == (True, -32602, "text must not be empty")


async def test_a_result_that_breaks_the_tools_own_schema_is_an_error(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        result = await hub.call("raw", "liar", {})
    assert result.is_error
    assert "liar" in result.text


async def test_a_result_that_is_too_long_is_an_error_that_says_so(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        result = await hub.call("raw", "big", {})
    assert result.is_error
    assert "over 1,000,000" in result.text


async def test_an_answer_that_is_no_tool_result_is_infra(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        with pytest.raises(InfraError, match="does not follow the protocol"):
            await hub.call("raw", "garble", {})


async def test_a_slow_tool_is_given_up_and_the_server_named(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        with pytest.raises(InfraError, match=r"MCP server 'raw' .* gave no answer to 'slow' within 0.2 s"):
            await hub.call("raw", "slow", {}, seconds=0.2)


async def test_a_message_without_end_ends_the_server(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        with pytest.raises(InfraError, match="a message of more than 8,000,000 bytes"):
            await hub.call("raw", "huge", {})
        assert (await hub.call("raw", "echo", {"text": "again"})).text == "again"


@pytest.mark.parametrize("value", ["\ud800", float("nan"), {"deep": None}])
async def test_arguments_that_json_cannot_carry_are_an_error_result_and_harm_nobody(
    raw: Raw, opened: Opening, value: object
) -> None:
    if isinstance(value, dict):
        for _ in range(100_000):
            value = [value]
    async with opened(raw()) as hub:
        result = await hub.call("raw", "echo", {"text": value})  # type: ignore[dict-item]
        assert result.is_error
        assert "were not sent" in result.text
        assert (await hub.call("raw", "echo", {"text": "fine"})).text == "fine"


async def test_names_that_are_not_there_are_refused_with_near_ones(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        with pytest.raises(UsageError, match=r"no tool 'ecko': did you mean 'echo'"):
            await hub.call("raw", "ecko", {})
        with pytest.raises(UsageError, match=r"no MCP server 'row': did you mean 'raw'"):
            await hub.call("row", "echo", {})


# --- deaths ----------------------------------------------------------------------------------------------------


async def pid(hub: OpenHub) -> int:
    return int((await hub.call("raw", "pid", {})).text)


async def test_a_death_is_infra_for_the_call_and_the_next_one_finds_a_new_server(raw: Raw, opened: Opening) -> None:
    async with opened(raw(sandbox="none")) as hub:  # in `bwrap`, all have the same number
        first = await pid(hub)
        with pytest.raises(InfraError) as caught:
            await hub.call("raw", "die", {})
        second = await pid(hub)
    said = str(caught.value)
    assert "died while 'die' was being called: it ended; it exited with code 7" in said
    assert "the disk is on fire" in said
    assert first != second


async def test_a_death_takes_every_call_in_flight_along_and_none_hangs(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        calls = [hub.call("raw", "die", {}), *(hub.call("raw", "echo", {"text": "x"}) for _ in range(20))]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, InfraError) for outcome in outcomes)


async def test_a_death_between_calls_goes_unnoticed(raw: Raw, opened: Opening, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    async with opened(raw("child", note, sandbox="none")) as hub:
        first, written = await pid(hub), note.read_text()
        os.kill(first, signal.SIGKILL)
        while note.read_text() == written:  # until its successor has begun
            await asyncio.sleep(0.01)
        assert await pid(hub) != first


async def test_deaths_in_a_row_are_counted_and_the_server_is_given_up(raw: Raw, opened: Opening) -> None:
    async with opened(raw(), deaths_in_a_row=3) as hub:
        for _ in range(3):
            with pytest.raises(InfraError, match="died while 'die'"):
                await hub.call("raw", "die", {})
        with pytest.raises(InfraError, match="died 3 times in a row and is not started again"):
            await hub.call("raw", "echo", {})


async def test_unless_told_otherwise_a_server_is_started_again_once(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        for _ in range(2):
            with pytest.raises(InfraError, match="died while 'die'"):
                await hub.call("raw", "die", {})
        with pytest.raises(InfraError, match="died 2 times in a row and is not started again") as caught:
            await hub.call("raw", "echo", {})
    assert caught.value.permanent


async def test_an_answer_in_between_starts_the_count_anew(raw: Raw, opened: Opening) -> None:
    async with opened(raw()) as hub:
        for _ in range(4):
            with pytest.raises(InfraError):
                await hub.call("raw", "die", {})
            assert (await hub.call("raw", "echo", {"text": "ok"})).text == "ok"


async def test_a_server_that_does_not_come_back_is_tried_again_and_then_given_up(
    raw: Raw, opened: Opening, tmp_path: Path
) -> None:
    async with opened(raw("comes-back-never", tmp_path / "mark"), deaths_in_a_row=3) as hub:
        with pytest.raises(InfraError, match="died while 'die'"):
            await hub.call("raw", "die", {})
        with pytest.raises(InfraError, match="the licence has run out"):
            await hub.call("raw", "echo", {})
        with pytest.raises(InfraError, match="3 times in a row and is not started again"):
            await hub.call("raw", "echo", {})


async def test_a_server_that_comes_back_with_other_tools_is_given_up(raw: Raw, opened: Opening, tmp_path: Path) -> None:
    async with opened(raw("changes", tmp_path / "mark")) as hub:
        with pytest.raises(InfraError):
            await hub.call("raw", "die", {})
        with pytest.raises(InfraError, match="came back with other tools"):
            await hub.call("raw", "echo", {})
