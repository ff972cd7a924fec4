"""The growing prefix, against tables worked out by hand, in hundredths of a millionth of a dollar."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.models.estimate import simulate, simulate_suites
from bakeoff.models.prices import Price, Tier
from bakeoff.record import Usage

SONNET = Price(
    input=Decimal("0.000003"),
    output=Decimal("0.000015"),
    cache_read=Decimal("0.0000003"),
    cache_write=Decimal("0.00000375"),
    key="k",
    source="config",
)
UNIT = 10**8
INPUT, OUTPUT, READ, WRITE = 300, 1500, 30, 375


def steps(*prompts: int, output: int = 0) -> list[Usage]:
    return [Usage(input=prompt, output=output) for prompt in prompts]


def test_the_example_of_the_specification_comes_out_to_the_last_digit() -> None:
    simulation = simulate(steps(1000, 1500, 2100, output=200), SONNET)
    assert simulation.actual_cost == 0.0228
    assert simulation.simulated_cost == 0.017625
    assert simulation.saving == 0.005175
    assert (simulation.hits, simulation.writes, simulation.output) == (2500, 2100, 600)
    assert simulation.as_cache_simulation() == {
        "simulatedCostWithCache": 0.017625,
        "cacheHits": 2500,
        "cacheWriteTokens": 2100,
        "outputTokens": 600,
        "simulatedInputCost": 0.008625,
        "simulatedOutputCost": 0.009,
    }


# prompts, then what was read and written at each step
TABLE = [
    pytest.param([], [], [], id="zero steps"),
    pytest.param([1000], [0], [1000], id="one step"),
    pytest.param([0], [0], [0], id="an empty prompt"),
    pytest.param([1000, 1000, 1000], [0, 1000, 1000], [1000, 0, 0], id="equal prompts"),
    pytest.param([1000, 1500, 2100], [0, 1000, 1500], [1000, 500, 600], id="growing prompts"),
    pytest.param([2000, 500, 100], [0, 2000, 2000], [2000, 0, 0], id="shrinking prompts"),
    pytest.param([1000, 400, 1600], [0, 1000, 1000], [1000, 0, 600], id="shrinking, then growing"),
    pytest.param([0, 700], [0, 0], [0, 700], id="growing from nothing"),
]


@pytest.mark.parametrize(("prompts", "read", "written"), TABLE)
def test_each_step_reads_the_prefix_and_writes_what_is_new(
    prompts: list[int], read: list[int], written: list[int]
) -> None:
    simulation = simulate(steps(*prompts, output=10), SONNET)
    cost = READ * sum(read) + WRITE * sum(written) + OUTPUT * 10 * len(prompts)
    assert (simulation.hits, simulation.writes) == (sum(read), sum(written))
    assert simulation.simulated_cost == cost / UNIT
    assert simulation.actual_cost == (INPUT * sum(prompts) + OUTPUT * 10 * len(prompts)) / UNIT


@pytest.mark.parametrize(
    ("missing", "read", "write"),
    [
        (set(), 50, 400),
        ({"cache_read"}, 30, 400),
        ({"cache_write"}, 50, 375),
        ({"cache_read", "cache_write"}, 30, 375),
    ],
)
def test_a_missing_cache_price_is_a_tenth_or_five_quarters_of_the_input_price(
    missing: set[str], read: int, write: int
) -> None:
    given = {"cache_read": Decimal("0.0000005"), "cache_write": Decimal("0.000004")}
    price = SONNET.model_copy(update={name: None if name in missing else given[name] for name in given})
    assert simulate(steps(1000, 1500), price).simulated_cost == (1000 * read + 1500 * write) / UNIT


def test_cache_prices_that_are_given_are_used_even_when_they_are_zero() -> None:
    price = SONNET.model_copy(update={"cache_read": Decimal(0), "cache_write": Decimal(0)})
    assert simulate(steps(1000, 1500), price).simulated_cost == 0.0


def test_without_a_price_tokens_are_counted_and_costs_stay_unknown() -> None:
    simulation = simulate(steps(1000, 1500), None)
    assert (simulation.hits, simulation.writes) == (1000, 1500)
    assert (simulation.simulated_cost, simulation.actual_cost, simulation.saving) == (None, None, None)
    assert simulation.as_cache_simulation() == {}


def test_one_step_costs_more_with_a_cache_than_without() -> None:
    simulation = simulate(steps(1000), SONNET)
    assert simulation.saving == -0.00075


def test_each_suite_begins_with_an_empty_cache() -> None:
    simulation = simulate_suites([steps(1000, 1500), steps(1000)], SONNET)
    assert (simulation.hits, simulation.writes) == (1000, 2500)
    assert simulation.simulated_cost == (READ * 1000 + WRITE * 2500) / UNIT


def test_the_simulation_asks_what_a_cache_would_save_whatever_was_cached_in_fact() -> None:
    cached = [Usage(input=1000, cache_write=1000), Usage(input=1500, cache_read=1000)]
    simulation = simulate(cached, SONNET)
    assert simulation.simulated_cost == simulate(steps(1000, 1500), SONNET).simulated_cost
    assert simulation.actual_cost == (WRITE * 1000 + READ * 1000 + INPUT * 500) / UNIT


def test_a_step_with_a_long_prompt_pays_the_rates_of_its_tier() -> None:
    tier = Tier(input=Decimal("0.000006"), output=Decimal("0.00003"), above=1000)
    price = SONNET.model_copy(update={"tiers": (tier,)})
    assert simulate(steps(1000, 1500), price).simulated_cost == (WRITE * 1000 + 60 * 1000 + 750 * 500) / UNIT


def test_a_shorter_prompt_reads_the_whole_prefix_and_writes_nothing() -> None:
    simulation = simulate([Usage(input=prompt, output=5) for prompt in (1000, 1500, 700)], SONNET)
    assert (simulation.hits, simulation.writes, simulation.output) == (2500, 1500, 15)


@given(st.lists(st.integers(0, 10**6), max_size=12))
def test_what_is_written_is_the_longest_prompt_and_nothing_twice(prompts: list[int]) -> None:
    simulation = simulate(steps(*prompts), SONNET)
    assert simulation.writes == max(prompts, default=0)
    assert simulation.hits == sum(max(prompts[:place]) for place in range(1, len(prompts)))
