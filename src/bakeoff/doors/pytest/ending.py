"""Print evals on the terminal; at the end of a session, judge the gates, write the requested files and sum up."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.junitxml import LogXML, xml_key

from bakeoff._kernel.text import count_of, visible, without_command
from bakeoff.doors.pytest.options import COLLECTION, results_folder, shard_of
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.report.gates import GateResult, gates_sentence, of_shard_alone, worst_last
from bakeoff.report.output_files import refuse_unwritable
from bakeoff.report.render.text_tables import block_lines
from bakeoff.report.suites.blocks import WORST, summary_blocks
from bakeoff.report.suites.numbers import SuitesSummary, SuiteTallies, summary_of
from bakeoff.report.suites.outcome_lines import colour_of, detail_lines, item_line, run_properties
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.ledger import ShardsHere

if TYPE_CHECKING:
    from bakeoff.doors.pytest.until_decided import SessionDecisions
    from bakeoff.report.suites.files import Places
    from bakeoff.report.suites.gates import SuiteGates

_COLOURS = {True: "green", False: "red", None: "yellow"}  # of a gate
_MANY_WORST = 10  # cases of a suite that -v names
_NOTHING_TO_COMPARE = (
    "--eval-until-decided found nothing to compare: it compares the sets of parameters of a suite (parametrize), or "
    "the suites that --eval-baseline has too"
)


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The result of a session."""

    summary: SuitesSummary
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()  # files that could not be written
    annotations: tuple[str, ...] = ()

    @property
    def conclusion(self) -> dict[str, Any]:
        """Return the ledger, without names of cases, and the gates for the end of the kept run."""
        ledger = self.summary.ledger.model_dump(mode="json", exclude={"named"})
        return {"ledger": ledger, "gates": [gate.model_dump(mode="json") for gate in self.summary.gates]}

    @property
    def failed(self) -> bool:
        """Tell whether a gate failed or is undecided, or a file could not be written."""
        return bool(self.problems) or not all(gate.met for gate in self.summary.gates)

    @property
    def forgives(self) -> bool:
        """Tell whether a pass rate was requested and reached, so that single misses are allowed."""
        return any(gate.option.endswith("min-pass-rate") and gate.met for gate in self.summary.gates)


def read_gates(config: pytest.Config) -> "SuiteGates":
    """Return the gates that the options ask for. Raise pytest.UsageError before a test runs if they cannot work."""
    from bakeoff.report.gates import NONE_ALLOWED, GateRule
    from bakeoff.report.suites.eval_file import read_eval_file
    from bakeoff.report.suites.gates import SuiteGates, read_history

    option = config.option
    try:
        for name in ("--eval-json", "--eval-html", "--eval-baseline", "--eval-history", "--eval-history-baseline"):
            _refuse_misleading(config, name)
        for name, path in (("--eval-json", option.eval_json), ("--eval-html", option.eval_html)):
            if path is not None:
                refuse_unwritable(name, path)
        if option.eval_junit and not getattr(option, "xmlpath", None):
            raise UsageError("--eval-junit adds scores to the file of --junitxml: name one with --junitxml=FILE")
        if option.eval_gate is not None and option.eval_baseline is None:
            raise UsageError(f"--eval-gate {option.eval_gate} compares with an earlier run: add --eval-baseline=FILE")
        before = None if option.eval_baseline is None else read_eval_file(option.eval_baseline)
        earlier = []
        if option.eval_history is not None:
            earlier = read_history(option.eval_history, option.eval_json, option.eval_history_baseline)
        elif option.eval_history_baseline is not None:
            raise UsageError("--eval-history-baseline begins a series of earlier runs: add --eval-history=DIR")
    except BakeoffError as error:
        raise pytest.UsageError(str(error)) from error
    if option.eval_until_decided:
        from bakeoff.doors.pytest.until_decided import register

        register(config, None if before is None else before.outcomes)
    return SuiteGates(
        option.eval_min_pass_rate,
        option.eval_fail_under,
        before,
        GateRule(option.eval_gate or "regression", option.eval_margin, option.eval_undecidable),
        labelled=results_folder(config) if option.eval_require_calibrated_judge else None,
        allowed=option.eval_allow_undecided or NONE_ALLOWED,
        history=earlier,
    )


def _refuse_misleading(config: pytest.Config, name: str) -> None:
    """Refuse an option value, written without `=`, that made pytest use another configuration.

    pytest looks for its configuration before it knows our options, next to everything that looks like a test path.
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


def end(
    config: pytest.Config,
    gates: "SuiteGates | None",
    tallies: SuiteTallies,
    outcomes: Iterable[EvalOutcome],
    *,
    stopped: bool,
    places: "Places",
    environment: Mapping[str, str] = os.environ,
) -> SessionEnd:
    """Judge the gates, then write the files: a file that cannot be written does not change the verdict.

    Args:
        config: the configuration of the session; its options name the files.
        gates: the gates that the command line asks for.
        tallies: the counts of the session so far.
        outcomes: all outcomes; they may be iterated several times.
        stopped: whether something was not run or not read, so that no gate passes.
        places: the files and lines of failed tests, for annotations.
        environment: the variables that GitHub sets, and those that hold secrets.
    """
    on_github = environment.get("GITHUB_ACTIONS") == "true"
    if gates is None and not on_github:  # no file is to be written
        return SessionEnd(_judged(config, None, tallies, outcomes, stopped=stopped))
    from bakeoff.report.suites.files import OutcomeRedactor, annotations

    redact = OutcomeRedactor(environment)
    named = list(map(redact, tallies.unjudged))  # the ledger and the gates name them, also in files
    summary = _judged(config, gates, replace(tallies, unjudged=named), outcomes, stopped=stopped)
    notes, problems = [], []
    for write in _files(config, summary, outcomes, redact, environment if on_github else {}):
        try:
            notes.append(write())
        except (BakeoffError, OSError) as error:
            problems.append(str(error))
    told = tuple(annotations(summary, redact, places, environment)) if on_github else ()
    return SessionEnd(summary, tuple(filter(None, notes)), tuple(problems), told)


def _judged(
    config: pytest.Config,
    gates: "SuiteGates | None",
    tallies: SuiteTallies,
    outcomes: Iterable[EvalOutcome],
    *,
    stopped: bool,
) -> SuitesSummary:
    """Return the summary with its comparisons, gates and shard, and add its properties to pytest's JUnit file."""
    summary = summary_of(tallies, complete=not stopped)
    decisions: SessionDecisions | None = config.pluginmanager.getplugin("bakeoff-until-decided")
    if decisions is not None:
        summary = replace(summary, comparisons=decisions.followed.comparisons())
        gates = gates and decisions.for_gates(gates)
    if gates is not None:
        from bakeoff.report.suites.gates import judge_gates

        summary = replace(summary, gates=judge_gates(gates, outcomes, summary))
    summary = _of_its_shard(config, summary)  # after its gates, which do not wait for the other shards
    if (xml := config.stash.get(xml_key, None)) is not None:
        for name, value in run_properties(summary) if config.option.eval_junit else ():
            xml.add_global_property(name, value)
        for gate in summary.gates:
            _add_to_junit(xml, gate)
    return summary


def _add_to_junit(xml: LogXML, gate: GateResult) -> None:
    """Add a gate as a test that fails unless the gate passed, as some programs read only tests."""
    said = None if gate.met else f"gate {gate.word}: {gate.sentence}"
    name, place = f"gate::{gate.option}", ("gate", None, gate.option)
    xml.pytest_runtest_logreport(pytest.TestReport(name, place, {}, "failed" if said else "passed", said, "call"))
    xml.pytest_runtest_logreport(pytest.TestReport(name, place, {}, "passed", None, "teardown"))


def _of_its_shard(config: pytest.Config, summary: SuitesSummary) -> SuitesSummary:
    """Add the shard's number to its summary and gates. Return the summary of a whole run unchanged."""
    if (shard := shard_of(config)) is None:
        return summary
    here = ShardsHere(of=shard[1], numbers=(shard[0],), collection=config.stash.get(COLLECTION, None))
    words = f"{alone.lstrip()}: " if (alone := of_shard_alone(here)) else ""  # shard 1 of 1 is the whole run
    gates = (gate.model_copy(update={"sentence": f"{words}{gate.sentence}"}) for gate in summary.gates)
    return replace(summary, shards=here, gates=tuple(gates))


def _files(
    config: pytest.Config,
    summary: SuitesSummary,
    outcomes: Iterable[EvalOutcome],
    redact: Callable[[EvalOutcome], EvalOutcome],
    github: Mapping[str, str],
) -> Iterator[Callable[[], str]]:
    """Yield a function for each file to write, which returns a note about it."""
    from bakeoff.report.exports.ci import SUMMARY_FILE
    from bakeoff.report.suites.files import write_html, write_json, write_step

    option, watch = config.option, config.pluginmanager.getplugin("bakeoff-watch")
    if option.eval_json is not None:
        yield lambda: write_json(outcomes, summary, option.eval_json, redact)
    if option.eval_html is not None:
        cycle = None if watch is None else watch.number
        yield lambda: write_html(list(map(redact, outcomes)), summary, option.eval_html, cycle)
    if github.get(SUMMARY_FILE):
        yield lambda: write_step(summary, redact, github)


def print_ending(terminal: pytest.TerminalReporter, ending: SessionEnd, *, verbosity: int, forgiven: int = 0) -> None:
    """Print the verdict, the summary and the written files; `forgiven` counts misses that the pass rate allows."""
    writer = terminal.config.get_terminal_writer()
    worst = 0 if verbosity < 0 else WORST if verbosity == 0 else _MANY_WORST
    terminal.section("evals", "-" if verbosity < 0 else "=")
    print_verdict(terminal, ending)
    blocks = list(summary_blocks(replace(ending.summary, gates=()), worst=worst))
    for line in block_lines(blocks, writer.fullwidth, coloured=writer.hasmarkup):
        terminal.line(without_command(line))
    if forgiven:
        missed = count_of(forgiven, "eval missed its threshold", "evals missed their thresholds")
        terminal.line(f"{missed}, which the pass rate allows: pytest exits with 0", green=True)
    decisions = terminal.config.pluginmanager.getplugin("bakeoff-until-decided")
    nothing = decisions is not None and ending.summary.comparisons is None and ending.summary.suites
    for note in (*ending.notes, *([_NOTHING_TO_COMPARE] if nothing else [])):
        terminal.line(without_command(visible(note, 1000)))
    for problem in ending.problems:
        terminal.line(without_command(f"error: {visible(problem, 1000)}"), red=True)
    for annotation in ending.annotations:
        terminal.line(annotation)


def print_gates(terminal: pytest.TerminalReporter, gates: Sequence[GateResult]) -> None:
    """Print a line for each gate, the worst last."""
    for gate in worst_last(gates):
        sentence = f"{gate.option} {gate.word}: {visible(gate.sentence, 2000)}"
        terminal.line(without_command(sentence), **{_COLOURS[gate.met]: True})


def print_verdict(terminal: pytest.TerminalReporter, ending: SessionEnd) -> None:
    """Print the verdict of the gates in one line; nothing without gates."""
    if gates := ending.summary.gates:
        colour = _COLOURS[worst_last(gates)[-1].met]
        sentence = gates_sentence(gates, ending.summary.shards)
        terminal.line(without_command(sentence), **{colour: True}, bold=True)


def print_item(terminal: pytest.TerminalReporter, report: pytest.TestReport, outcomes: Sequence[EvalOutcome]) -> None:
    """Print `path::test[case] 0.82 42ms` on a line of its own, also between pytest's dots."""
    writer = terminal._tw
    name, rest = item_line(report.nodeid, "" if report.passed else "FAILED", outcomes, _width(terminal))
    if writer.width_of_current_line:
        writer.line()
    writer.write(f"{name} ")
    writer.line(rest, **{colour_of(outcomes): True})


def print_details(
    terminal: pytest.TerminalReporter, report: pytest.TestReport, outcomes: Sequence[EvalOutcome]
) -> None:
    """Print tool calls, scores and outputs below the unfinished line of pytest."""
    writer, (file, line_before, _) = terminal._tw, report.location
    place = f"{file}:{(line_before or 0) + 1}"
    for line, wrong in detail_lines(outcomes, place, _width(terminal)):
        writer.line()
        writer.write(line, red=wrong, light=not wrong)


def _width(terminal: pytest.TerminalReporter) -> int | None:
    """Return the width of a line; None without a terminal, because output for programs is never cut."""
    return terminal._tw.fullwidth - 1 if terminal.isatty else None
