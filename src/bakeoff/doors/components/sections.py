"""Show the suites, and what each MCP server changed, on the run pages of this door.

Every run page already has the cost with its cache simulation, the matrix of suites, and all transcripts.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bakeoff._kernel.text import visible
from bakeoff.doors.case_section import NAME, cases_section, named
from bakeoff.doors.components.request import JOINED
from bakeoff.doors.components.sections_files import file_section
from bakeoff.plan import Case, SubjectSpec
from bakeoff.report.blocks import Column, Datum, Section, Table, Tone, Value, columns
from bakeoff.report.formatting import UNKNOWN, cost, percent
from bakeoff.stats.cells import CaseKey, Cells
from bakeoff.stats.comparison import compare

if TYPE_CHECKING:
    from bakeoff.report.render.html.run_data import RunData


def components_sections(run: "RunData") -> tuple[Section, ...]:
    made = (file_section(run), _servers_section(run), _suites_section(run))
    return tuple(section for section in made if section is not None)


def mcp_pairs(subjects: Sequence[SubjectSpec]) -> Iterator[tuple[SubjectSpec, SubjectSpec]]:
    """Return each model without a server, paired with the same model with servers."""
    agents = [spec for spec in subjects if spec.kind == "agent"]
    alone = {_without_servers(spec): spec for spec in agents if not spec.options.get("mcp")}
    for spec in agents:
        if spec.options.get("mcp") and (baseline := alone.get(_without_servers(spec))):
            yield baseline, spec


def _without_servers(spec: SubjectSpec) -> str:
    options = {name: value for name, value in spec.options.items() if name != "mcp"}
    return spec.model_copy(update={"name": "-", "options": options}).digest


def _servers_section(run: "RunData") -> Section | None:
    pairs = list(mcp_pairs(run.plan.subjects))
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
    found = compare(_cells(run, without), _cells(run, with_))
    spent = {subject.subject: subject.spent.cost for subject in run.summary.subjects}
    low, high = (found.interval.low, found.interval.high) if found.interval else (0.0, 0.0)
    # Only a difference that the interval shows has a colour.
    tone: Tone = "pass" if low > 0 else "fail" if high < 0 else "plain"
    return (
        Datum(visible(without.name, NAME), tone="strong"),
        visible(with_.name.removeprefix(without.name).removeprefix(JOINED), NAME),
        Datum(percent(found.baseline), sort=found.baseline),
        Datum(percent(found.candidate), sort=found.candidate),
        Datum(
            UNKNOWN if found.difference is None else f"{100 * found.difference:+.1f}", sort=found.difference, tone=tone
        ),
        f"{100 * low:+.1f} … {100 * high:+.1f}" if found.interval else "undefined",
        UNKNOWN if found.p_value is None else f"{found.p_value:.3f}",
        f"{found.wins} / {found.ties} / {found.losses}",
        f"{cost(spent.get(without.name))} → {cost(spent.get(with_.name))}",
    )


def _cells(run: "RunData", spec: SubjectSpec) -> Cells:
    return {CaseKey(case): cell for case, cell in run.cells[spec.name].items()}


def _suites_section(run: "RunData") -> Section | None:
    return cases_section(
        run,
        "suites",
        columns("Component", "Runner", "Tests", "Validator"),
        _suite_cells,
        prompt="prompt",
        described=any(case.tags for case in run.plan.cases),
    )


def _suite_cells(case: Case) -> tuple[Value, ...]:
    tests, validator = (case.grading.tests, case.grading.validator) if case.grading else ((), None)
    return tuple(named(", ".join(case.reference), case.tags.get("runner", ""), ", ".join(tests), validator or ""))
