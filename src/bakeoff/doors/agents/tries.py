"""Let agents try an exercise again: the tool that runs its tests for them, and the report of what each try solved."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import JsonValue

from bakeoff._kernel.text import part_of
from bakeoff.doors.agents.scoring import accepted_files
from bakeoff.grading.cases import graded_case
from bakeoff.grading.runners import run_tests, type_errors
from bakeoff.plan import Case, Plan
from bakeoff.protocols import Tool
from bakeoff.record import Record
from bakeoff.report.blocks import Column, Datum, Quote, Section, Table, Value
from bakeoff.subjects.agent_run import agent_run_in
from bakeoff.subjects.command_agent import TESTS_TOOL
from bakeoff.toolchains.outcome import TestRun
from bakeoff.verdict import Verdict

_MAX_FAILURES = 20
_LONGEST = 6000  # characters that an agent is shown


def try_tools(case: Case, resources: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Return the tool that tests what an agent left. Of hidden tests it says nothing."""
    graded = graded_case(case).shown

    async def test(arguments: Mapping[str, JsonValue]) -> JsonValue:
        given = arguments.get("files")
        answer = accepted_files(graded, given if isinstance(given, dict) else {})  # type: ignore[arg-type]  # texts
        run = await run_tests(graded, answer, resources)
        types = await type_errors(graded, answer, resources)
        return None if run.ok and types is None else _output(run, types)

    return (Tool(TESTS_TOOL, "Test the files of an answer.", {"type": "object"}, test),)


def _output(run: TestRun, types: str | None) -> str:
    failed = [f"{test.name}: {test.message}".strip() for test in run.tests if test.state == "failed"]
    passed = sum(test.state == "passed" for test in run.tests)
    counts = f"{part_of(passed, len(run.tests), 'test')} passed."
    said = [counts, *filter(None, (types, run.error)), *failed[:_MAX_FAILURES]]
    return "\n\n".join(said)[:_LONGEST]


def tries_section(plan: Plan, records: Iterable[Record]) -> Section | None:
    """Say how many trials each agent solved at each try; None if the plan allows one try only."""
    most = max((_tries_of(spec.options) for spec in plan.subjects), default=1)
    if most < 2:
        return None
    solved: dict[str, list[int]] = {spec.name: [0] * most for spec in plan.subjects if _tries_of(spec.options) > 1}
    scored = dict.fromkeys(solved, 0)
    for record in records:
        if record.subject in solved and record.verdict.counts and record.transcript is not None:
            scored[record.subject] += 1
            if record.verdict is Verdict.PASS:
                used = agent_run_in(record.transcript).tries
                solved[record.subject][min(max(used, 1), most) - 1] += 1
    titles = (Column("Subject"), *(Column(f"By try {number}", align="end") for number in range(1, most + 1)))
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (Quote(name), *(_share(sum(counts[: number + 1]), scored[name]) for number in range(most)))
        for name, counts in solved.items()
    )
    note = (
        "A later try sees what the tests said of the one before. Scores count every exercise that the last try solved."
    )
    return Section("tries", "Tries", (Table(titles, rows, "Trials solved, by try", (note,)),))


def _tries_of(options: Mapping[str, Any]) -> int:
    found = options.get("tries", 1)
    return found if isinstance(found, int) else 1


def _share(solved: int, scored: int) -> Datum:
    share = solved / scored if scored else None
    return Datum("–" if share is None else f"{100 * share:.1f} % ({solved}/{scored})", sort=share)
