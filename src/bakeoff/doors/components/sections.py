"""Show the suites, and what each MCP server changed, on the run pages of this door.

Every run page already has the cost with its cache simulation, the matrix of suites, and all transcripts. The page of a
result file also shows the totals that the file states. They are never recomputed.
"""

from typing import TYPE_CHECKING

from bakeoff._kernel.text import visible
from bakeoff.doors.case_section import NAME, cases_section, named
from bakeoff.doors.components.plan import JOINED
from bakeoff.doors.components.results.model import RecordedSubject
from bakeoff.logs.trials import RECORDED
from bakeoff.models.prices import format_cost, format_mtok_cost
from bakeoff.plan import Case, SubjectSpec, read_options
from bakeoff.report.blocks import Column, Datum, Section, Table, Tone, Value, columns
from bakeoff.report.compare.within_run import compare_subjects
from bakeoff.report.formatting import UNKNOWN, cost, percent, points, points_range

if TYPE_CHECKING:
    from bakeoff.report.render.html.run_data import RunData


def components_sections(run: "RunData") -> tuple[Section, ...]:
    """Return the sections that this door adds to the page of a run or a result file."""
    titles = columns("Component", "Runner", "Tests", "Validator")
    described = any(case.tags for case in run.plan.cases)
    suites = cases_section(run, "suites", titles, _suite_cells, prompt="prompt", described=described)
    made = (file_section(run), _servers_section(run), suites)
    return tuple(section for section in made if section is not None)


def _without_servers(spec: SubjectSpec) -> str:
    options = {name: value for name, value in spec.options.items() if name != "mcp"}
    return spec.model_copy(update={"name": "-", "options": options}).digest


def _servers_section(run: "RunData") -> Section | None:
    agents = [spec for spec in run.plan.subjects if spec.kind == "agent"]
    alone = {_without_servers(spec): spec for spec in agents if not spec.options.get("mcp")}
    found = [(alone.get(_without_servers(spec)), spec) for spec in agents if spec.options.get("mcp")]
    pairs = [(without, spec) for without, spec in found if without is not None]
    if not pairs:
        return None
    titles = (
        *columns("Model", "With", "Score without>", "Score with>"),
        Column("Difference", align="end", help="in points, over the suites that both were scored in"),
        *columns("95 % interval>", "p>"),
        Column("Better / same / worse", align="end", help="suites"),
        *columns("Cost without → with>"),
    )
    rows = tuple(_servers_row(run, without, with_) for without, with_ in pairs)
    notes = (
        "The same suites with and without the servers, compared in pairs. An interval that contains 0 means that a "
        "difference is not shown.",
    )
    return Section("mcp-servers", "MCP on and off", (Table(titles, rows, "What MCP servers changed", notes),))


def _servers_row(run: "RunData", without: SubjectSpec, with_: SubjectSpec) -> tuple[Value, ...]:
    found = compare_subjects(run.cells.__getitem__, without.name, with_.name)
    spent = {subject.subject: subject.spent.cost for subject in run.summary.subjects}
    low, high = (found.interval.low, found.interval.high) if found.interval else (0.0, 0.0)
    # Only a difference that the interval shows has a colour.
    tone: Tone = "pass" if low > 0 else "fail" if high < 0 else "plain"
    return (
        Datum(visible(without.name, NAME), tone="strong"),
        visible(with_.name.removeprefix(without.name).removeprefix(JOINED), NAME),
        Datum(percent(found.baseline), sort=found.baseline),
        Datum(percent(found.candidate), sort=found.candidate),
        Datum(points(found.difference), sort=found.difference, tone=tone),
        points_range(found.interval),
        UNKNOWN if found.p_value is None else f"{found.p_value:.3f}",
        f"{found.wins} / {found.ties} / {found.losses}",
        f"{cost(spent.get(without.name))} → {cost(spent.get(with_.name))}",
    )


def _suite_cells(case: Case) -> tuple[Value, ...]:
    tests, validator = (case.grading.tests, case.grading.validator) if case.grading else ((), None)
    return tuple(named(", ".join(case.reference), case.tags.get("runner", ""), ", ".join(tests), validator or ""))


def file_section(run: "RunData") -> Section | None:
    """Return the section of an imported file; None for a run of our own, whose cost section is more detailed."""
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
    how = f" ({subject.mcp_transport_type})" if subject.mcp_transport_type else ""
    server, price = f"{subject.mcp_server_url or 'enabled'}{how}", subject.pricing
    rates = (price.input_cost_per_m_tok, price.output_cost_per_m_tok, price.cache_read_cost_per_m_tok) if price else ()
    saving = spent.total_cost - cached.simulated_cost_with_cache if spent and cached else None
    return (
        Datum(text=visible(subject.model, NAME), tone="strong"),
        Datum(text=visible(server, NAME), tone="pass") if subject.mcp_enabled else Datum(text="none", tone="muted"),
        f"{units.passed:,} / {units.total:,}" if units else UNKNOWN,
        Datum(text=f"{units.share:g}", sort=units.share) if units else None,
        Datum(text=format_cost(spent.total_cost), sort=spent.total_cost) if spent else None,
        " / ".join(UNKNOWN if rate is None else format_mtok_cost(rate) for rate in rates) if price else UNKNOWN,
        Datum(text=format_cost(cached.simulated_cost_with_cache)) if cached else None,
        UNKNOWN if saving is None else f"{'−' if saving < 0 else ''}{format_cost(abs(saving))}",
        cached.cache_hits if cached else None,
        cached.cache_write_tokens if cached else None,
    )
