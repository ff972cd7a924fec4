"""Test how result files are called."""

import pytest

from bakeoff.doors.components.results.model import (
    sanitize_model_name,
    stamp_in,
    timestamped_name,
)
from bakeoff.doors.result_files import timestamp_of, unique_names
from bakeoff.logs.trials import seconds_of

NOON = "2024-12-07T12:00:05.250Z"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/claude-sonnet-4.5", "anthropic-claude-sonnet-4.5"),
        ("local:smollm2", "local-smollm2"),
        ("../../etc/passwd", "..-..-etc-passwd"),
        ("ü \x1b[31m", "----31m"),
    ],
)
def test_a_model_in_a_file_name_has_only_letters_digits_and_dots(model: str, expected: str) -> None:
    assert sanitize_model_name(model) == expected


def test_a_name_is_of_the_time_the_model_the_servers_and_the_round() -> None:
    assert timestamped_name(NOON) == "result-2024-12-07-12-00-05.json"
    assert timestamped_name(NOON, "openai/gpt-5") == "result-2024-12-07-12-00-05-openai-gpt-5.json"
    assert (
        timestamped_name(NOON, "openai/gpt-5", ["mcp.svelte.dev", "@scope/two"], 3)
        == "result-2024-12-07-12-00-05-openai-gpt-5-mcp-mcp.svelte.dev--scope-two-r3.json"
    )


def test_a_name_fits_every_file_system_however_long_the_model_is_called() -> None:
    assert len(timestamped_name(NOON, "m" * 5000, ["s" * 5000], 1_000_000)) < 255


def test_a_time_in_another_zone_is_named_in_utc() -> None:
    assert timestamped_name("2024-12-08T01:30:00+02:00") == "result-2024-12-07-23-30-00.json"


def test_times_are_written_as_javascript_writes_them_and_read_back() -> None:
    assert timestamp_of(seconds_of(NOON) or 0.0) == NOON
    assert timestamp_of(0) == "1970-01-01T00:00:00.000Z"


def test_files_of_one_name_are_unique_names_by_a_number() -> None:
    assert unique_names(["a.json", "a.json", "b.json", "a-2.json"]) == ["a.json", "a-2.json", "b.json", "a-2-2.json"]


def test_the_time_in_a_name_is_found_if_it_is_one() -> None:
    assert stamp_in("result-2024-12-07-14-30-45-model.json") == "2024-12-07T14:30:45.000Z"
    assert stamp_in("result-2024-13-07-14-30-45.json") is None
    assert stamp_in("other-2024-12-07-14-30-45.json") is None
