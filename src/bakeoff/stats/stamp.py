"""What two runs must have in common for their numbers to mean the same."""

from typing import NamedTuple

from bakeoff._kernel.model import FrozenModel


class Stamp(FrozenModel):
    """The circumstances of one subject in one run. None: not known, or there was none."""

    model: str | None = None
    agent_version: str | None = None
    sandbox: str | None = None
    timeouts: str | None = None
    network_policy: str | None = None
    mcp_tools_hash: str | None = None
    prompt_hash: str | None = None
    price_date: str | None = None


class Mismatch(NamedTuple):
    """One circumstance that differs."""

    field: str
    baseline: str | None
    candidate: str | None

    def __str__(self) -> str:
        was, now = (repr(value) if value is not None else "unknown" for value in (self.baseline, self.candidate))
        return f"{self.field.replace('_', ' ')}: {was} in the baseline, {now} in the candidate"


def mismatches(baseline: Stamp, candidate: Stamp) -> tuple[Mismatch, ...]:
    """Every circumstance that differs, in the order of the fields; one that only one side knows differs too."""
    both = ((name, getattr(baseline, name), getattr(candidate, name)) for name in Stamp.model_fields)
    return tuple(Mismatch(name, was, now) for name, was, now in both if was != now)
