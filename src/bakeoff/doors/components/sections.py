"""Show the suites, and what each MCP server changed, on the run pages of this door.

Every run page already has the cost with its cache simulation, the matrix of suites, and all transcripts.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bakeoff.doors.components.sections_files import file_section
from bakeoff.plan import Case, SubjectSpec
from bakeoff.report.blocks import Block, Code, Column, Datum, Section, Table, Tone, Value
from bakeoff.report.formatting import UNKNOWN, cost, percent, visible
from bakeoff.stats.cells import CaseKey, Cells
from bakeoff.stats.comparison import Comparison, compare

if TYPE_CHECKING:
    from bakeoff.report.html.run_data import RunData

_NAME = 120
_SUITES = 100  # whose texts are on the page; more would make it slow


def components_sections(run: "RunData") -> tuple[Section, ...]:
    from_file = file_section(run)
    made = (from_file, _servers_section(run), _suites_section(run))
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
    columns = (
        Column(title="Model"),
        Column(title="With"),
        Column(title="Score without", align="end"),
        Column(title="Score with", align="end"),
        Column(title="Difference", align="end", help="in points, over the suites that both were scored in"),
        Column(title="95 % interval", align="end"),
        Column(title="p", align="end"),
        Column(title="Better / same / worse", align="end", help="suites"),
        Column(title="Cost without → with", align="end"),
    )
    rows = tuple(_servers_row(run, without, with_) for without, with_ in pairs)
    notes = (
        "The same suites with and without the servers, compared in pairs. An interval that contains 0 means that a "
        "difference is not shown.",
    )
    table = Table(columns=columns, rows=rows, caption="What MCP servers changed", notes=notes)
    return Section(id="mcp-servers", title="MCP on and off", blocks=(table,))


def _servers_row(run: "RunData", without: SubjectSpec, with_: SubjectSpec) -> tuple[Value, ...]:
    found = compare(_cells(run, without), _cells(run, with_))
    spent = {subject.subject: subject.spent.cost for subject in run.summary.subjects}
    servers = with_.name.removeprefix(without.name).removeprefix(" + ")
    return (
        Datum(text=visible(without.name, _NAME), tone="strong"),
        visible(servers, _NAME),
        Datum(text=percent(found.baseline), sort=found.baseline),
        Datum(text=percent(found.candidate), sort=found.candidate),
        Datum(text=_points(found.difference), sort=found.difference, tone=_tone(found)),
        _interval(found),
        UNKNOWN if found.p_value is None else f"{found.p_value:.3f}",
        f"{found.wins} / {found.ties} / {found.losses}",
        f"{cost(spent.get(without.name))} → {cost(spent.get(with_.name))}",
    )


def _cells(run: "RunData", spec: SubjectSpec) -> Cells:
    return {CaseKey(case): cell for case, cell in run.cells[spec.name].items()}


def _points(difference: float | None) -> str:
    return UNKNOWN if difference is None else f"{100 * difference:+.1f}"


def _interval(found: Comparison) -> str:
    if found.interval is None:
        return "undefined"
    return f"{100 * found.interval.low:+.1f} … {100 * found.interval.high:+.1f}"


def _tone(found: Comparison) -> Tone:
    """Return a colour only if the interval shows a difference."""
    if found.interval is None or found.interval.low <= 0 <= found.interval.high:
        return "plain"
    return "pass" if found.interval.low > 0 else "fail"


def _suites_section(run: "RunData") -> Section:
    if not any(case.tags for case in run.plan.cases):  # a result file does not describe its suites
        prompts = tuple(block for case in run.plan.cases[:_SUITES] for block in _texts(case))
        return Section(id="suites", title="Suites", blocks=prompts)
    columns = (
        Column(title="Suite"),
        Column(title="Component"),
        Column(title="Runner"),
        Column(title="Tests"),
        Column(title="Validator"),
    )
    rows = tuple(_suite_row(case) for case in run.plan.cases)
    table = Table(columns=columns, rows=rows, caption="The suites and how they are graded")
    texts = [block for case in run.plan.cases[:_SUITES] for block in _texts(case)]
    return Section(id="suites", title="Suites", blocks=(table, *texts))


def _suite_row(case: Case) -> tuple[Value, ...]:
    tests = case.grading.tests if case.grading else ()
    validator = case.grading.validator if case.grading else None
    cells = (", ".join(case.reference), case.tags.get("runner", ""), ", ".join(tests), validator or "")
    return (Datum(text=visible(case.id, _NAME), tone="strong"), *(visible(cell, _NAME) or UNKNOWN for cell in cells))


def _texts(case: Case) -> Iterator[Block]:
    name = visible(case.id, _NAME)
    yield Code(text=case.prompt, language="markdown", title=f"{name}: prompt")
    for reference in case.reference.values():
        yield Code(text=reference, language=case.tags.get("language", ""), title=f"{name}: reference")
