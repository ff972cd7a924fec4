"""Test the total cost of suites, to the last digit."""

from decimal import Decimal
from typing import Any

import pytest

from bakeoff.doors.components.results.write import bill_of
from bakeoff.models.prices import Price, format_cost, format_mtok_cost, split_costs
from bakeoff.record import Record, Step, Transcript, Usage

PRICE = Price(
    input=Decimal("0.000003"),
    output=Decimal("0.000015"),
    cache_read=Decimal("0.0000003"),
    cache_write=Decimal("0.00000375"),
    key="maker/model",
    source="gateway",
)
GROWING = [Usage(requests=1, input=tokens, output=200) for tokens in (1000, 1500, 2100)]


def record_of(case: str, usages: list[Usage], price: Price | None = PRICE, **more: Any) -> Record:
    metadata = {"price": price.model_dump(mode="json")} if price else {}
    return Record(
        case=case,
        subject="s",
        round=0,
        attempt_key="a",
        score_key="s",
        started=0.0,
        threshold=1.0,
        transcript=Transcript(steps=tuple(Step(usage=usage) for usage in usages), metadata=metadata),
        **more,
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(input=2000, cache_read=1000, output=1000), (0.003, 0.015, 0.0003, 0.0183, 1000, 1000, 1000)),
        (Usage(input=1000), (0.003, 0, 0, 0.003, 1000, 0, 0)),
    ],
)
def test_tokens_are_billed_at_the_rate_of_their_kind(usage: Usage, expected: tuple[float, ...]) -> None:
    costs = split_costs([usage], PRICE)
    assert costs is not None
    assert tuple(costs.as_total_cost().values()) == expected


def test_a_growing_conversation_is_billed_as_it_was_and_as_a_cache_would_have_it() -> None:
    bill = bill_of([record_of("one", GROWING)])
    assert bill is not None
    assert bill.costs.total_cost == 0.0228
    assert bill.cached.simulated_cost == 0.017625
    assert bill.cached.saving == 0.005175
    assert (bill.cached.hits, bill.cached.writes) == (2500, 2100)


def test_every_suite_begins_with_an_empty_cache() -> None:
    bill = bill_of([record_of("one", GROWING), record_of("two", GROWING)])
    assert bill is not None
    assert bill.costs.total_cost == 0.0456
    assert bill.cached.simulated_cost == 0.03525
    assert (bill.cached.hits, bill.cached.writes) == (5000, 4200)


def test_a_price_that_changed_during_a_run_bills_each_suite_at_its_own() -> None:
    dearer = PRICE.model_copy(update={"input": Decimal("0.000006"), "key": "maker/model-2"})
    bill = bill_of([record_of("one", [Usage(input=1000)]), record_of("two", [Usage(input=1000)], dearer)])
    assert bill is not None
    assert bill.costs.total_cost == 0.009
    assert bill.price.key == "maker/model-2"


def test_where_no_price_is_known_there_is_no_bill() -> None:
    assert bill_of([record_of("one", GROWING, None)]) is None
    assert bill_of([]) is None
    assert bill_of([record_of("one", [Usage(requests=1)])]) is None, "a provider that counted nothing"
    assert split_costs(GROWING, None) is None


def test_a_price_that_is_none_of_ours_is_passed_over() -> None:
    record = record_of("one", GROWING)
    assert record.transcript is not None
    strange = record.transcript.model_copy(update={"metadata": {"price": {"input": "much"}}})
    assert bill_of([record.model_copy(update={"transcript": strange})]) is None


@pytest.mark.parametrize(
    ("dollars", "cost", "per_million"),
    [
        (0, "$0.00", "$0"),
        (0.000123, "$0.000123", "$0.0001"),
        (0.00999, "$0.009990", "$0.0100"),
        (0.01, "$0.0100", "$0.01"),
        (0.0183, "$0.0183", "$0.02"),
        (0.9999, "$0.9999", "$1.00"),
        (1, "$1.00", "$1.00"),
        (15, "$15.00", "$15.00"),
    ],
)
def test_the_smaller_an_amount_the_more_digits_it_is_shown_with(dollars: float, cost: str, per_million: str) -> None:
    assert format_cost(dollars) == cost
    assert format_mtok_cost(dollars) == per_million
