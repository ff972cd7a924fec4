"""Prices and costs, to the last digit."""

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bakeoff.errors import UsageError
from bakeoff.models.prices import (
    Price,
    Tier,
    cost_of,
    format_cost,
    format_mtok_cost,
    genai_date,
    genai_provider_of,
    models_of_genai,
    parse_gateway_pricing,
    price_from_genai,
    split_costs,
)
from bakeoff.record import Usage
from bakeoff.report.formatting import cost

SONNET = Price(
    input=Decimal("0.000003"),
    output=Decimal("0.000015"),
    cache_read=Decimal("0.0000003"),
    cache_write=Decimal("0.00000375"),
    key="anthropic/claude-sonnet-4",
    source="gateway",
)
PLAIN = SONNET.model_copy(update={"cache_read": None, "cache_write": None})


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(input=2000, cache_read=1000, output=1000), 0.0183),
        (Usage(input=1000), 0.003),
        (Usage(input=2000, cache_write=1000), 0.00675),
        (Usage(input=3000, cache_read=1000, cache_write=1000, output=1000), 0.02205),
        (Usage(), 0.0),
    ],
)
def test_a_request_costs_what_the_specification_says(usage: Usage, expected: float) -> None:
    assert cost_of(usage, SONNET) == expected


def test_three_growing_prompts_cost_what_the_specification_says() -> None:
    usages = [Usage(input=prompt, output=200) for prompt in (1000, 1500, 2100)]
    costs = split_costs(usages, SONNET)
    assert costs is not None
    assert costs.total_cost == 0.0228


def test_an_unknown_price_is_unknown_and_never_nothing() -> None:
    assert cost_of(Usage(input=1000), None) is None
    assert split_costs([Usage(input=1000)], None) is None


def test_cached_tokens_without_a_price_of_their_own_cost_what_input_costs() -> None:
    assert cost_of(Usage(input=3000, cache_read=1000, cache_write=1000), PLAIN) == 0.009


def test_a_provider_that_counts_cached_tokens_beside_the_prompt_earns_no_negative_price() -> None:
    assert cost_of(Usage(input=100, cache_read=1000), SONNET) == 0.0003


def test_the_split_is_the_total_cost_of_the_seeds_own_example() -> None:
    costs = split_costs([Usage(input=2000, cache_read=1000, output=1000)], SONNET)
    assert costs is not None
    assert costs.as_total_cost() == {
        "inputCost": 0.003,
        "outputCost": 0.015,
        "cacheReadCost": 0.0003,
        "totalCost": 0.0183,
        "inputTokens": 1000,
        "outputTokens": 1000,
        "cachedInputTokens": 1000,
    }


def test_written_tokens_are_in_the_total_and_not_among_those_billed_at_the_input_rate() -> None:
    costs = split_costs([Usage(input=2000, cache_write=1000)], SONNET)
    assert costs is not None
    assert (costs.input_tokens, costs.cache_write_tokens) == (1000, 1000)
    assert (costs.input_cost, costs.cache_write_cost, costs.total_cost) == (0.003, 0.00375, 0.00675)


def test_many_small_costs_add_up_without_a_digit_too_many() -> None:
    costs = split_costs([Usage(input=1)] * 1000, SONNET)
    assert costs is not None
    assert costs.total_cost == 0.003


@given(
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
)
def test_the_parts_of_a_cost_are_the_whole(fresh: int, read: int, written: int, output: int) -> None:
    usage = Usage(input=fresh + read + written, cache_read=read, cache_write=written, output=output)
    costs = split_costs([usage], SONNET)
    assert costs is not None
    # In hundredths of a millionth of a dollar, where every price is whole.
    expected = 300 * fresh + 30 * read + 375 * written + 1500 * output
    assert costs.total_cost == expected / 10**8
    assert costs.total_cost == cost_of(usage, SONNET)


TIERED = SONNET.model_copy(
    update={
        "tiers": (
            Tier(input=Decimal("0.000006"), output=Decimal("0.00003"), above=200_000),
            Tier(input=Decimal("0.000012"), output=Decimal("0.00006"), above=400_000),
        )
    }
)


@pytest.mark.parametrize(
    ("prompt", "expected"), [(200_000, 0.6), (200_001, 1.200006), (400_000, 2.4), (400_001, 4.800012)]
)
def test_a_long_prompt_pays_the_rate_of_its_tier_for_every_token(prompt: int, expected: float) -> None:
    assert cost_of(Usage(requests=1, input=prompt), TIERED) == expected


def test_several_requests_in_one_usage_are_not_taken_for_one_long_prompt() -> None:
    assert cost_of(Usage(requests=3, input=300_000), TIERED) == 0.9


@pytest.mark.parametrize(
    ("dollars", "expected"),
    [
        (0, "$0.00"),
        (0.0000004, "$0.000000"),
        (0.000123, "$0.000123"),
        (0.0099999, "$0.010000"),
        (0.01, "$0.0100"),
        (0.0183, "$0.0183"),
        (0.99994, "$0.9999"),
        (1, "$1.00"),
        (1.125, "$1.13"),
        (1234.5, "$1234.50"),
        (-0.001, "-$0.001000"),
        (-2, "-$2.00"),
        (1e30, "$1000000000000000019884624838656.00"),
    ],
)
def test_a_cost_has_the_more_digits_the_smaller_it_is(dollars: float, expected: str) -> None:
    assert format_cost(dollars) == expected
    assert cost(dollars) == expected


@pytest.mark.parametrize(
    ("dollars", "expected"), [(0, "$0"), (0.0075, "$0.0075"), (0.01, "$0.01"), (0.3, "$0.30"), (3, "$3.00")]
)
def test_a_price_per_million_has_at_most_four_digits(dollars: float, expected: str) -> None:
    assert format_mtok_cost(dollars) == expected


def test_prices_per_million_have_the_names_of_a_result_file() -> None:
    assert SONNET.per_mtok() == {
        "inputCostPerMTok": 3.0,
        "outputCostPerMTok": 15.0,
        "cacheReadCostPerMTok": 0.3,
        "cacheCreationCostPerMTok": 3.75,
    }
    assert PLAIN.per_mtok() == {"inputCostPerMTok": 3.0, "outputCostPerMTok": 15.0}


def test_a_price_comes_back_from_json_as_it_was() -> None:
    assert Price.model_validate_json(TIERED.model_dump_json()) == TIERED


@pytest.mark.parametrize("amount", ["-0.1", "NaN", "Infinity", "3"])
def test_a_price_in_a_config_must_be_one_per_token(amount: str) -> None:
    with pytest.raises(ValidationError, match="input"):
        Price.model_validate({"input": amount, "output": "0", "key": "k", "source": "config"})


SDK = {"input": "0.000003", "output": "0.000015", "cachedInputTokens": "3e-7", "cacheCreationInputTokens": "0.00000375"}
REST = {
    "input": "0.000003",
    "output": "0.000015",
    "input_cache_read": "0.0000003",
    "input_cache_write": "0.00000375",
    "web_search": "10",
}


@pytest.mark.parametrize("raw", [SDK, REST], ids=["AI SDK", "REST"])
def test_the_gateways_price_is_read_under_either_name(raw: dict[str, Any]) -> None:
    assert parse_gateway_pricing("anthropic/claude-sonnet-4", raw) == SONNET


def test_a_price_that_is_a_number_and_not_a_string_is_read_too() -> None:
    price = parse_gateway_pricing("m", {"input": 0.000003, "output": 0})
    assert price is not None
    assert (price.input, price.output) == (Decimal("0.000003"), Decimal(0))


@pytest.mark.parametrize("raw", [None, {}, {"input": "0.1"}, {"output": "0.1"}, {"image": "0.04"}, {"input": None}])
def test_without_a_price_for_input_and_output_there_is_none(raw: Any) -> None:
    assert parse_gateway_pricing("m", raw) is None


@pytest.mark.parametrize("field", ["input", "output", "cachedInputTokens", "input_cache_write"])
@pytest.mark.parametrize(
    "value",
    ["free", "", "-0.1", "NaN", "inf", "1e999", "0x10", "١", "1_0", "3", True, [], {}, float("nan"), -1, "9" * 10**6],
)
def test_a_senseless_price_is_an_error_that_names_the_model_and_the_value(field: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gateway_pricing("acme/rocket", {"input": "0.1", "output": "0.1", field: value})
    message = str(caught.value)
    assert "'acme/rocket'" in message
    assert field in message
    assert repr(value)[:60] in message
    assert len(message) < 500


@pytest.mark.parametrize("raw", ["free", 3, []])
def test_pricing_that_is_no_object_is_an_error_too(raw: Any) -> None:
    with pytest.raises(UsageError, match=r"'acme/rocket'.*pricing"):
        parse_gateway_pricing("acme/rocket", raw)


def test_an_error_emits_no_control_characters() -> None:
    with pytest.raises(UsageError) as caught:
        parse_gateway_pricing("acme/\x1b[31m", {"input": "\x1b]0;x\x07"})
    assert str(caught.value).isprintable()


def test_the_gateways_tiers_are_read_with_each_rates_own_brackets() -> None:
    raw = {
        "input": "0.000002",
        "input_tiers": [
            {"cost": "0.000002", "min": 0, "max": 128_001},
            {"cost": "0.000003", "min": 128_001, "max": 200_001},
            {"cost": "0.000004", "min": 200_001},
        ],
        "output": "0.000012",
        "output_tiers": [{"cost": "0.000012", "max": 200_001}, {"cost": "0.000018", "min": 200_001}],
        "input_cache_read": "0.0000002",
    }
    price = parse_gateway_pricing("google/gemini-3-pro", raw, date=date(2026, 11, 1))
    assert price == Price(
        input=Decimal("0.000002"),
        output=Decimal("0.000012"),
        cache_read=Decimal("0.0000002"),
        key="google/gemini-3-pro",
        source="gateway",
        date=date(2026, 11, 1),
        tiers=(
            Tier(
                input=Decimal("0.000003"),
                output=Decimal("0.000012"),
                cache_read=Decimal("0.0000002"),
                above=128_000,
            ),
            Tier(
                input=Decimal("0.000004"),
                output=Decimal("0.000018"),
                cache_read=Decimal("0.0000002"),
                above=200_000,
            ),
        ),
    )


@pytest.mark.parametrize(
    "tiers", ["many", [1], [{"cost": "x"}], [{"min": 5}], [{"cost": "0", "min": -1}], [{"cost": "0", "min": "1"}]]
)
def test_a_senseless_tier_is_an_error_that_names_the_model(tiers: Any) -> None:
    with pytest.raises(UsageError, match=r"'acme/rocket'.*input_tiers"):
        parse_gateway_pricing("acme/rocket", {**REST, "input_tiers": tiers})


AUTUMN = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_genai_prices_knows_the_seeds_example() -> None:
    price = price_from_genai("anthropic", "claude-sonnet-4", AUTUMN)
    assert price is not None
    assert price.per_mtok() == SONNET.per_mtok()
    assert (price.source, price.key, price.date) == (
        "genai-prices",
        "anthropic/claude-sonnet-4-0",
        genai_date(),
    )


def test_the_date_of_genai_prices_is_one_in_the_past() -> None:
    known = genai_date()
    assert known is not None
    assert date(2026, 1, 1) < known <= datetime.now(UTC).date()


def test_a_price_is_the_one_that_held_at_the_time() -> None:
    before = price_from_genai("openai", "o3", datetime(2025, 6, 9, tzinfo=UTC))
    after = price_from_genai("openai", "o3", datetime(2025, 6, 10, tzinfo=UTC))
    assert before is not None
    assert after is not None
    assert (before.per_mtok()["inputCostPerMTok"], after.per_mtok()["inputCostPerMTok"]) == (10, 2)


def test_a_price_that_depends_on_the_hour_is_that_of_the_hour() -> None:
    day = price_from_genai("deepseek", "deepseek-chat", datetime(2026, 11, 1, 12, tzinfo=UTC))
    night = price_from_genai("deepseek", "deepseek-chat", datetime(2026, 11, 1, 20, tzinfo=UTC))
    assert day is not None
    assert night is not None
    assert night.input < day.input


def test_tiers_of_genai_prices_are_kept() -> None:
    price = price_from_genai("anthropic", "claude-sonnet-4-5", AUTUMN)
    assert price is not None
    assert [tier.above for tier in price.tiers] == [200_000]
    assert price.tiers[0].per_mtok() == {
        "inputCostPerMTok": 6.0,
        "outputCostPerMTok": 22.5,
        "cacheReadCostPerMTok": 0.6,
        "cacheCreationCostPerMTok": 7.5,
    }


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "no-such-model"),
        ("no-such-provider", "claude-sonnet-4"),
        ("openai-compatible", "gpt-4o"),  # a server of one's own
        ("openai", "text-embedding-3-small"),  # has no output
        ("perplexity", "sonar"),  # has a fee for each request, so tokens alone would tell too little
        ("", ""),
    ],
)
def test_what_has_no_price_per_token_has_none(provider: str, model: str) -> None:
    assert price_from_genai(provider, model, AUTUMN) is None


@pytest.mark.parametrize(("ours", "theirs"), [("xai", "x-ai"), ("gemini", "google"), ("openai-responses", "openai")])
def test_providers_are_found_by_our_names(ours: str, theirs: str) -> None:
    model = {"x-ai": "grok-4.3", "google": "gemini-2.5-pro", "openai": "gpt-5"}[theirs]
    price = price_from_genai(ours, model, AUTUMN)
    assert price is not None
    assert price.key.startswith(f"{theirs}/")


def test_whose_a_model_is_can_be_told_from_its_name() -> None:
    assert genai_provider_of("claude-sonnet-4") == "anthropic"
    assert genai_provider_of("nobody-knows-this") is None


def test_every_model_of_genai_prices_has_a_price_that_is_one_or_none() -> None:
    known = list(models_of_genai())
    assert len(known) > 500
    priced = [model for _, model, price in known if price is not None]
    assert len(priced) > len(known) / 2


def test_prices_are_looked_up_without_a_network() -> None:
    """An audit hook sees every attempt at a connection or a name, whoever makes it."""
    program = """
import sys

def no_network(event, arguments):
    if event.startswith("socket."):
        sys.exit(f"{event}{arguments}")

sys.addaudithook(no_network)
from bakeoff.models.prices import models_of_genai, price_from_genai
assert price_from_genai("anthropic", "claude-sonnet-4") is not None
assert price_from_genai("anthropic", "nothing") is None
assert list(models_of_genai())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
