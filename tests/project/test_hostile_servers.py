"""A sample of `python -m scripts.hostile.servers`, which sends our servers what no browser sends."""

import asyncio

import pytest
from scripts.hostile.servers import SERVERS, attack, serving

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", SERVERS)
def test_no_request_breaks_a_server_or_keeps_it_from_others(name: str) -> None:
    with serving(name) as server:
        _, wrong = asyncio.run(attack(server, count=150, half_open=300))
    assert wrong == []
