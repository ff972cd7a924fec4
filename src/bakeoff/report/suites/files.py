"""Write the files of a run of suites: `--eval-json` and `--eval-html`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bakeoff.report.blocks import DoorParts
from bakeoff.report.output_files import PUBLIC, replace_file
from bakeoff.report.readers import Source
from bakeoff.report.suites.blocks import gates_badge, gates_sentence, page_sections
from bakeoff.report.suites.eval_file import EvalFileReader, file_chunks
from bakeoff.report.suites.numbers import SuitesSummary, SuiteTallies, summary_of
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.redaction import Redactor, known_secrets


def write_json(
    outcomes: Iterable[EvalOutcome], summary: SuitesSummary, target: Path, redact: Callable[[EvalOutcome], EvalOutcome]
) -> str:
    """Write the file of `--eval-json`; return a note about it."""
    with replace_file(target) as path, path.open("wb") as file:
        file.writelines(file_chunks(outcomes, summary, redact))
    return f"wrote {target}"


def write_incomplete(target: Path) -> None:
    """Write a file without results, which no gate is met by, if there is one already."""
    if target.exists():
        with suppress(OSError):  # told at the end, when the results cannot be written either
            write_json((), summary_of(SuiteTallies(), complete=False), target, lambda given: given)


def write_html(outcomes: Sequence[EvalOutcome], summary: SuitesSummary, target: Path, cycle: int | None = None) -> str:
    """Write the page of `--eval-html` from redacted outcomes; return a note about it."""
    if not summary.suites:
        return f"{target} was not written: there is no eval to show"
    from bakeoff.report.render.html.render import write_cycle
    from bakeoff.report.render.html.run_page import write_source_page

    # The tallies of the session hold texts that are not redacted.
    again = summary_of(SuiteTallies.of(outcomes), summary.gates, complete=summary.complete, shards=summary.shards)
    summary = replace(again, comparisons=summary.comparisons)
    source = Source(target, EvalFileReader(outcomes))
    target.parent.mkdir(parents=True, exist_ok=True)
    badge = gates_badge(summary.gates)
    parts = DoorParts(gates_sentence(summary.gates), after=tuple(page_sections(summary)), badge=badge)
    written = write_source_page(source, target, parts=lambda _: parts, mode=PUBLIC, cycle=cycle)
    if cycle is not None:
        write_cycle(target, cycle)
    return f"wrote {written}"


class OutcomeRedactor:
    """Removes known secrets from outcomes before they are written to a file."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._redactor = Redactor(known_secrets(environment))

    def __call__(self, outcome: EvalOutcome) -> EvalOutcome:
        found = self._redactor.finds(outcome.model_dump_json().encode())
        return self._redactor.model(outcome) if found else outcome
