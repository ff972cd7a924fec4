"""Write the files of a run of suites: `--eval-json` and `--eval-html`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path

from bakeoff.report.blocks import DoorParts
from bakeoff.report.exports.ci import MAX_ANNOTATIONS, command, write_step_outputs, write_step_summary
from bakeoff.report.gates import gates_sentence
from bakeoff.report.output_files import PUBLIC, replace_file
from bakeoff.report.suites.blocks import not_passed, page_sections, step_blocks
from bakeoff.report.suites.eval_file import file_chunks, source_of
from bakeoff.report.suites.numbers import Redact, SuitesSummary, SuiteTallies, file_part, summary_of, why_not
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.redaction import Redactor, known_secrets

Places = Mapping[str, tuple[Path, int | None]]
"""The file of each test, and its line counted from 0, by node id."""


def write_json(outcomes: Iterable[EvalOutcome], summary: SuitesSummary, target: Path, redact: Redact) -> str:
    """Write the file of `--eval-json`, and return a note that names it."""
    with replace_file(target) as path, path.open("wb") as file:
        file.writelines(file_chunks(outcomes, summary, redact))
    return f"wrote {target}"


def write_incomplete(target: Path) -> None:
    """Replace an existing file with one that has no results, so that no gate passes on it."""
    if target.exists():
        with suppress(OSError):  # reported at the end, when the results cannot be written either
            write_json((), summary_of(SuiteTallies(), complete=False), target, lambda given: given)


def write_html(outcomes: Sequence[EvalOutcome], summary: SuitesSummary, target: Path, cycle: int | None = None) -> str:
    """Write the page of `--eval-html` from redacted outcomes, and return a note that names it."""
    if not summary.suites:
        return f"{target} was not written: there is no eval to show"
    from bakeoff.report.render.html.render import write_cycle
    from bakeoff.report.render.html.run_page import write_source_page

    # The tallies of the session hold texts that are not redacted.
    again = summary_of(SuiteTallies.of(outcomes), summary.gates, complete=summary.complete, shards=summary.shards)
    summary = replace(again, comparisons=summary.comparisons)
    source = source_of(outcomes, target, ledger=summary.ledger, gates=summary.gates)
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = DoorParts(after=tuple(page_sections(summary)))
    written = write_source_page(source, target, parts=lambda _: parts, mode=PUBLIC, cycle=cycle)
    if cycle is not None:
        write_cycle(target, cycle)
    return f"wrote {written}"


def write_step(summary: SuitesSummary, redact: Redact, environment: Mapping[str, str]) -> str:
    """Write the summary and the outputs of a GitHub step. Return an empty note, because there is no file to name."""
    blocks = step_blocks(summary, list(map(redact, not_passed(summary))))
    write_step_summary(list(blocks), StringIO(), environment)
    scores = [one.score for one in summary.suites.values() if one.score is not None]
    write_step_outputs(gates_sentence(summary.gates, summary.shards), min(scores, default=None), environment)
    return ""


def annotations(
    summary: SuitesSummary, redact: Redact, places: Places, environment: Mapping[str, str]
) -> Iterator[str]:
    """Yield an error for each eval that missed its threshold, and a warning for each that could not be judged.

    A notice counts those that have no annotation.
    """
    left_out = summary.numbers.failed + summary.numbers.undecided
    start = environment.get("GITHUB_WORKSPACE") or Path.cwd()  # GitHub's paths are relative to the repository
    for level, outcomes in (("error", summary.tallies.missed), ("warning", summary.tallies.unjudged)):
        for outcome in map(redact, outcomes[:MAX_ANNOTATIONS]):
            left_out -= 1
            path, line = places.get(outcome.nodeid, (Path(file_part(outcome.nodeid)), None))
            score = "no score" if outcome.score is None else f"score {outcome.score:.2f}"
            wanted = "" if outcome.threshold is None else f", threshold {outcome.threshold:g}"
            text = f"{score}{wanted}: {why_not(outcome)}"
            file = str(path.relative_to(start) if path.is_relative_to(start) else path)
            yield command(level, outcome.nodeid, text, file=file, line=None if line is None else line + 1)
    if left_out > 0:
        yield command("notice", "bakeoff", f"{left_out} more evals did not pass; the summary counts them")


class OutcomeRedactor:
    """A function that removes known secrets from outcomes before they are written to a file."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._redactor = Redactor(known_secrets(environment))

    def __call__(self, outcome: EvalOutcome) -> EvalOutcome:
        found = self._redactor.finds(outcome.model_dump_json().encode())
        return self._redactor.model(outcome) if found else outcome
