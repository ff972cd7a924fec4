"""Show the totals that a result file states, on its page. They are never recomputed."""

from typing import TYPE_CHECKING

from bakeoff._kernel.text import visible
from bakeoff.doors.case_section import NAME
from bakeoff.doors.components.results.imported import RecordedSubject
from bakeoff.doors.result_files import RECORDED
from bakeoff.models.prices import format_cost, format_mtok_cost
from bakeoff.plan import read_options
from bakeoff.report.blocks import Column, Datum, Section, Table, Value, columns
from bakeoff.report.formatting import UNKNOWN

if TYPE_CHECKING:
    from bakeoff.report.render.html.run_data import RunData


def file_section(run: "RunData") -> Section | None:
    """Return the section of an imported file; None for a run of our own, whose cost section has more."""
    subjects = [read_options(spec, RecordedSubject) for spec in run.plan.subjects if spec.kind == RECORDED]
    if not subjects:
        return None
    titles = (
        *columns("Model", "MCP"),
        Column("Unit tests", align="end", help="passed of all"),
        *columns("Score>", "Cost>", "Per MTok in / out / cached>"),
        Column("With a cache", align="end", help="simulated by the program that wrote the file"),
        *columns("Saving>", "Cache hits>", "Cache writes>"),
    )
    table = Table(titles, tuple(map(_row, subjects)), "Totals that the file states")
    return Section("file", "Cost summary", (table,))


def _row(subject: RecordedSubject) -> tuple[Value, ...]:
    units, spent, cached = subject.unit_test_totals, subject.total_cost, subject.cache_simulation
    saving = spent.total_cost - cached.simulated_cost_with_cache if spent and cached else None
    return (
        Datum(text=visible(subject.model, NAME), tone="strong"),
        _servers(subject),
        f"{units.passed:,} / {units.total:,}" if units else UNKNOWN,
        Datum(text=f"{units.share:g}", sort=units.share) if units else None,
        Datum(text=format_cost(spent.total_cost), sort=spent.total_cost) if spent else None,
        _rates(subject),
        Datum(text=format_cost(cached.simulated_cost_with_cache)) if cached else None,
        UNKNOWN if saving is None else f"{'−' if saving < 0 else ''}{format_cost(abs(saving))}",
        cached.cache_hits if cached else None,
        cached.cache_write_tokens if cached else None,
    )


def _servers(subject: RecordedSubject) -> Datum:
    if not subject.mcp_enabled:
        return Datum(text="none", tone="muted")
    how = f" ({subject.mcp_transport_type})" if subject.mcp_transport_type else ""
    return Datum(text=visible(f"{subject.mcp_server_url or 'enabled'}{how}", NAME), tone="pass")


def _rates(subject: RecordedSubject) -> str:
    if (price := subject.pricing) is None:
        return UNKNOWN
    rates = (price.input_cost_per_m_tok, price.output_cost_per_m_tok, price.cache_read_cost_per_m_tok)
    return " / ".join(UNKNOWN if rate is None else format_mtok_cost(rate) for rate in rates)
