"""The end of a session: from outcomes to the files that were asked for, gates, and what there is to say."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bakeoff._kernel.environment import read_environment
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.actions import Places, annotations, in_actions, write_summary
from bakeoff.doors.pytest_plugin.reporting.blocks import unhappy
from bakeoff.doors.pytest_plugin.reporting.gates import NO_GATES, Gates, judge_gates
from bakeoff.doors.pytest_plugin.reporting.numbers import Tallies
from bakeoff.doors.pytest_plugin.reporting.shape import Summary, file_chunks, read_eval_file, summary_of
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.report.output_files import refuse_unwritable, replace_file
from bakeoff.storage.redaction import Redactor, secrets_in


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for."""

    json: Path | None = None
    html: Path | None = None
    junit: bool = False
    gates: Gates = NO_GATES


NOTHING_WANTED = Wanted()


@dataclass(frozen=True, slots=True)
class Ending:
    """What a session came to."""

    summary: Summary
    forgives: bool  # a pass rate was asked for and reached: single misses are within what it allows
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()  # files that could not be written
    annotations: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        return bool(self.problems) or any(gate.met is False for gate in self.summary.gates)


def read_options(config: pytest.Config) -> Wanted:
    """Everything that can be known to be wrong is refused before a test runs."""
    option = config.option
    try:
        for name, path in (("--eval-json", option.eval_json), ("--eval-html", option.eval_html)):
            if path is not None:
                refuse_unwritable(name, path)
        if option.eval_junit and not getattr(option, "xmlpath", None):
            raise UsageError("--eval-junit adds scores to the file of --junitxml: name one with --junitxml=FILE")
        before = None if option.eval_baseline is None else read_eval_file(option.eval_baseline).outcomes
    except BakeoffError as error:
        raise pytest.UsageError(str(error)) from error
    gates = Gates(option.eval_min_pass_rate, option.eval_min_score, before)
    return Wanted(option.eval_json, option.eval_html, option.eval_junit, gates)


def end(
    wanted: Wanted,
    tallies: Tallies,
    outcomes: Sequence[EvalOutcome],
    *,
    stopped: bool,
    places: Places,
    environment: Mapping[str, str] = os.environ,
) -> Ending:
    """Judge, then write: a file that cannot be written takes nothing from the verdict."""
    summary = summary_of(tallies, complete=not stopped)
    gates = judge_gates(wanted.gates, outcomes, summary.numbers)
    summary = replace(summary, gates=gates)
    notes: list[str] = []
    problems: list[str] = []
    for write in _writers(wanted, summary, outcomes, environment):
        try:
            notes.append(write())
        except (BakeoffError, OSError) as error:
            problems.append(str(error))
    return Ending(
        summary=summary,
        forgives=any(gate.option.endswith("min-pass-rate") and gate.met for gate in gates),
        notes=tuple(note for note in notes if note),
        problems=tuple(problems),
        annotations=tuple(_annotations(summary, places, environment)),
    )


def _writers(
    wanted: Wanted, summary: Summary, outcomes: Sequence[EvalOutcome], environment: Mapping[str, str]
) -> Iterator[Callable[[], str]]:
    keep = Keeper(environment)
    if (target := wanted.json) is not None:
        yield lambda: write_json(outcomes, summary, target, keep)
    if (page := wanted.html) is not None:
        yield lambda: write_html(list(map(keep, outcomes)), summary, page)
    if in_actions(environment):
        yield lambda: _summarise(summary, list(map(keep, unhappy(summary))), environment)


def _summarise(summary: Summary, missed: list[EvalOutcome], environment: Mapping[str, str]) -> str:
    write_summary(summary, missed, environment)
    return ""


def _annotations(summary: Summary, places: Places, environment: Mapping[str, str]) -> Iterator[str]:
    if in_actions(environment):
        keep, tallies = Keeper(environment), summary.tallies
        missed, unjudged = list(map(keep, tallies.missed)), list(map(keep, tallies.unjudged))
        in_all = summary.numbers.failed + summary.numbers.undecided
        yield from annotations(missed, unjudged, places, environment, all_of_them=in_all)


def write_json(
    outcomes: Iterable[EvalOutcome], summary: Summary, target: Path, fit: Callable[[EvalOutcome], EvalOutcome]
) -> str:
    with replace_file(target) as path, path.open("wb") as file:
        file.writelines(file_chunks(outcomes, summary, fit))
    return f"wrote {target}"


def write_html(outcomes: Sequence[EvalOutcome], summary: Summary, target: Path) -> str:
    if not summary.suites:
        return f"{target} was not written: there is no eval to show"
    from bakeoff.doors.pytest_plugin.reporting.page import write_eval_page

    # Of what is kept: the tallies of the session know the texts as they were, secrets and all.
    summary = summary_of(Tallies.of(outcomes), summary.gates, complete=summary.complete, shards=summary.shards)
    return f"wrote {write_eval_page(outcomes, summary, target)}"


class Keeper:
    """Removes known secrets from outcomes before they are written to a file."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._redactor = Redactor(secrets_in(_with_files(environment)))

    def __call__(self, outcome: EvalOutcome) -> EvalOutcome:
        found = self._redactor.finds(outcome.model_dump_json().encode())
        return self._redactor.model(outcome) if found else outcome


def _with_files(environment: Mapping[str, str]) -> Mapping[str, str]:
    try:
        return read_environment(base=environment)
    except UsageError:  # a .env that cannot be read has given nobody a key, and takes no report from anybody
        return environment
