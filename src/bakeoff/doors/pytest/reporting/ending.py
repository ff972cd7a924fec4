"""The end of a session: judge the gates, write the requested files, and collect what is to be printed."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bakeoff.doors.pytest.options import results_folder
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.reporting.blocks import gates_sentence, not_passed, page_sections
from bakeoff.doors.pytest.reporting.ci import Places, annotations, write_summary
from bakeoff.doors.pytest.reporting.numbers import Tallies
from bakeoff.doors.pytest.reporting.session_summary import GateResult, SessionSummary, summary_of
from bakeoff.doors.pytest.reporting.undecided import NONE
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.report.output_files import PUBLIC, refuse_unwritable, replace_file
from bakeoff.storage.redaction import Redactor, known_secrets

if TYPE_CHECKING:
    from bakeoff.doors.pytest.reporting.gates import Gates
    from bakeoff.doors.pytest.until_decided import SessionDecisions

_NOTHING_TO_COMPARE = (
    "--eval-until-decided found nothing to compare: it compares the sets of parameters of a suite (parametrize), or "
    "the suites that --eval-baseline has too"
)


@dataclass(frozen=True, slots=True)
class RequestedFiles:
    """The reports and gates that the command line asks for."""

    json: Path | None = None
    html: Path | None = None
    junit: bool = False
    gates: "Gates | None" = None
    decisions: "SessionDecisions | None" = None  # of a session that ends when its evals are decided
    cycle: int | None = None  # of `--eval-watch`


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The result of a session."""

    summary: SessionSummary
    forgives: bool  # a pass rate was requested and reached, so that it allows single misses
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()  # files that could not be written
    annotations: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Tell whether a gate was not met or refused, or a file could not be written."""
        return bool(self.problems) or not all(gate.met for gate in self.summary.gates)


def read_options(config: pytest.Config) -> RequestedFiles:
    """Read the options, and refuse before a test runs what cannot work."""
    option = config.option
    try:
        for name in ("--eval-json", "--eval-html", "--eval-baseline"):
            _refuse_misleading(config, name)
        for name, path in (("--eval-json", option.eval_json), ("--eval-html", option.eval_html)):
            if path is not None:
                refuse_unwritable(name, path)
        if option.eval_junit and not getattr(option, "xmlpath", None):
            raise UsageError("--eval-junit adds scores to the file of --junitxml: name one with --junitxml=FILE")
        before = None if option.eval_baseline is None else _outcomes_in(option.eval_baseline)
    except BakeoffError as error:
        raise pytest.UsageError(str(error)) from error
    from bakeoff.doors.pytest.reporting.gates import Gates

    labelled = results_folder(config) if option.eval_require_calibrated_judge else None
    gates = Gates(
        option.eval_min_pass_rate,
        option.eval_min_score,
        before,
        margin=option.eval_margin,
        undecidable=option.eval_undecidable,
        labelled=labelled,
        allowed=option.eval_allow_undecided or NONE,
    )
    watch = config.pluginmanager.getplugin("bakeoff-watch")
    number = None if watch is None else watch.number
    return RequestedFiles(
        option.eval_json, option.eval_html, option.eval_junit, gates, _decisions(config, before), number
    )


def _outcomes_in(file: Path) -> Sequence[EvalOutcome]:
    from bakeoff.doors.pytest.reporting.eval_file import read_eval_file

    return read_eval_file(file).outcomes


def _refuse_misleading(config: pytest.Config, name: str) -> None:
    """Refuse a file after a space that has led pytest to the configuration of another folder, or to none.

    pytest looks for its configuration before it knows our options, beside everything that looks like a path of tests.
    """
    given, folder = config.invocation_params.args, config.invocation_params.dir
    chosen = config.option.rootdir or config.option.inifilename or config.args_source is config.ArgsSource.ARGS
    if chosen or name not in given[:-1]:
        return
    path = folder / given[list(map(str, given)).index(name) + 1]
    if path.exists() and not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{name} {path}: pytest has taken this for a path of tests, and looked for its configuration there "
            f"(rootdir {config.rootpath}): write {name}={path}"
        )


def _decisions(config: pytest.Config, baseline: Sequence[EvalOutcome] | None) -> "SessionDecisions | None":
    if not config.option.eval_until_decided:
        return None
    from bakeoff.doors.pytest.until_decided import register

    return register(config, baseline)


def end(
    requested: RequestedFiles,
    tallies: Tallies,
    outcomes: Iterable[EvalOutcome],
    *,
    stopped: bool,
    places: Places,
    environment: Mapping[str, str] = os.environ,
) -> SessionEnd:
    """Judge, then write: a file that cannot be written does not change the verdict."""
    summary = summary_of(tallies, complete=not stopped)
    compared = requested.decisions.comparisons() if requested.decisions else None
    gates = () if requested.gates is None else _judged(requested, requested.gates, outcomes, summary)
    summary = replace(summary, gates=gates, comparisons=compared)
    notes: list[str] = []
    if requested.decisions is not None and compared is None and summary.suites:
        notes.append(_NOTHING_TO_COMPARE)
    problems: list[str] = []
    redact = OutcomeRedactor(environment)
    on_github = environment.get("GITHUB_ACTIONS") == "true"

    def write(file: Callable[[], str]) -> None:
        try:
            notes.append(file())
        except (BakeoffError, OSError) as error:
            problems.append(str(error))

    if (target := requested.json) is not None:
        write(lambda: write_json(outcomes, summary, target, redact))
    if (page := requested.html) is not None:
        write(lambda: write_html(list(map(redact, outcomes)), summary, page, requested.cycle))
    if on_github:
        write(lambda: write_summary(summary, list(map(redact, not_passed(summary))), environment))
    return SessionEnd(
        summary=summary,
        forgives=any(gate.option.endswith("min-pass-rate") and gate.met for gate in gates),
        notes=tuple(note for note in notes if note),
        problems=tuple(problems),
        annotations=tuple(annotations(summary, redact, places, environment)) if on_github else (),
    )


def _judged(
    requested: RequestedFiles, gates: "Gates", outcomes: Iterable[EvalOutcome], summary: SessionSummary
) -> tuple[GateResult, ...]:
    from bakeoff.doors.pytest.reporting.gates import judge_gates

    decided = requested.decisions.against_baseline() if requested.decisions else {}
    return judge_gates(replace(gates, decided=decided), outcomes, summary)


def write_json(
    outcomes: Iterable[EvalOutcome], summary: SessionSummary, target: Path, redact: Callable[[EvalOutcome], EvalOutcome]
) -> str:
    """Write the file of `--eval-json`; return a note about it."""
    from bakeoff.doors.pytest.reporting.eval_file import file_chunks

    with replace_file(target) as path, path.open("wb") as file:
        file.writelines(file_chunks(outcomes, summary, redact))
    return f"wrote {target}"


def write_incomplete(target: Path) -> None:
    """Write a file without results, which no gate is met by, if there is one already."""
    if target.exists():
        with suppress(OSError):  # told at the end, when the results cannot be written either
            write_json((), summary_of(Tallies(), complete=False), target, lambda given: given)


def write_html(outcomes: Sequence[EvalOutcome], summary: SessionSummary, target: Path, cycle: int | None = None) -> str:
    """Write the page of `--eval-html` from redacted outcomes; return a note about it."""
    if not summary.suites:
        return f"{target} was not written: there is no eval to show"
    from bakeoff.doors.pytest.reporting.source import EvalFileReader
    from bakeoff.report.blocks import DoorParts
    from bakeoff.report.readers import Source
    from bakeoff.report.render.html import write_cycle, write_source_page

    # The tallies of the session hold texts that are not redacted.
    again = summary_of(Tallies.of(outcomes), summary.gates, complete=summary.complete, shards=summary.shards)
    summary = replace(again, comparisons=summary.comparisons)
    source = Source(target, EvalFileReader(outcomes))
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = DoorParts(gates_sentence(summary.gates), after=tuple(page_sections(summary)))
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
