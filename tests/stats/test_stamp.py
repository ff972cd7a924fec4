"""Test what must be alike for two runs to be compared."""

from bakeoff.stats.comparison import Stamp, mismatches

FULL = Stamp(
    model="m-1",
    agent_version="1.0",
    sandbox="bwrap",
    timeouts="attempt 60 s",
    network_policy="none",
    mcp_tools_hash="aa",
    prompt_hash="bb",
    price_date="2026-11-01",
)


def test_equal_stamps_have_no_mismatch() -> None:
    assert mismatches(FULL, FULL.model_copy()) == ()
    assert mismatches(Stamp(), Stamp()) == ()


def test_every_mismatch_is_named_in_the_order_of_the_fields() -> None:
    other = Stamp(**{name: f"other {value}" for name, value in FULL})
    assert [found.field for found in mismatches(FULL, other)] == [
        "model",
        "agent_version",
        "sandbox",
        "timeouts",
        "network_policy",
        "mcp_tools_hash",
        "prompt_hash",
        "price_date",
    ]


def test_a_mismatch_reads_as_a_sentence() -> None:
    (found,) = mismatches(FULL, FULL.model_copy(update={"sandbox": "process"}))
    assert str(found) == "sandbox: 'bwrap' in the baseline, 'process' in the candidate"


def test_what_only_one_side_knows_is_a_mismatch() -> None:
    (found,) = mismatches(FULL, FULL.model_copy(update={"agent_version": None}))
    assert str(found) == "agent version: '1.0' in the baseline, unknown in the candidate"
