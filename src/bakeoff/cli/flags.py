"""Declare the options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from typer import Argument, CallbackParam, Context, Option

from bakeoff._kernel.choices import (
    SHARD_FORM,
    ExecutorName,
    LogFormat,
    ReplayMode,
    SandboxName,
    UndecidableRule,
    shard_in,
)
from bakeoff._kernel.environment import JOBS_RULE
from bakeoff.cli.declare import Flags, flag
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.logs.reader import Choices
    from bakeoff.plan import Plan
    from bakeoff.report.exports.ci import CiOutputs
    from bakeoff.report.gates import Allowance
    from bakeoff.report.readers import Source

_RESULTS_HELP = "The folder that holds the runs, or s3://, gs:// or az://bucket/folder."


def _nearest_results(context: Context, parameter: CallbackParam, value: Path) -> Path:
    """Return the given results folder or, by default, the nearest one here or above that holds runs."""
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source.name != "DEFAULT":
        return value
    from bakeoff.storage.run_folder import nearest_results

    return nearest_results(value)


Results = Annotated[Path, Option(metavar="DIR", help=_RESULTS_HELP, callback=_nearest_results)]
NewResults = Annotated[Path, Option(metavar="DIR", help=_RESULTS_HELP)]


def _complete_run(incomplete: str) -> list[str]:
    """Return the names of runs for the shell, the latest first."""
    from bakeoff.storage.run_folder import LATEST, nearest_results, run_folders

    names = [LATEST, *(folder.label for folder in reversed(run_folders(nearest_results())))]
    return [name for name in names if name.startswith(incomplete)]


RunName = Annotated[
    str,
    Argument(metavar="RUN", help="The folder, name or address of a run, or `latest`.", autocompletion=_complete_run),
]
Jobs = Annotated[
    int | None,
    Option(min=1, metavar="N", help=f"How many trials to run at the same time. Default: {JOBS_RULE}."),
]
Sandbox = Annotated[SandboxName, Option(help="The sandbox that commands run in.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of a table.")]
Markdown = Annotated[bool, Option("--markdown", help="Print Markdown instead of a table.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
Port = Annotated[int, Option(min=0, max=65535, metavar="N", help="The port to listen on; 0 picks a free one.")]
MaxCost = Annotated[float | None, Option(metavar="USD", help="Stop at this cost; trials in flight are cut short.")]
Trust = Annotated[
    bool,
    Option("--trust", help="Run the commands and code that the plan names, although you did not start this run here."),
]
NoOpen = Annotated[bool, Option("--no-open", help="Do not open the browser.")]
ExitZero = Annotated[bool, Option("--exit-zero", help="Exit with 0 even if something failed.")]
RequireAudit = Annotated[
    Path | None,
    Option(metavar="FILE", help="Use only cases that passed this audit (audit.json) and have not changed since."),
]


MARGIN = flag(None, "The largest difference that does not matter, such as 0.05.", min=0, max=1, metavar="SHARE")
_ALL_DECIDED = "0"
ALLOW_UNDECIDED = flag(
    _ALL_DECIDED,
    "A number (3) or share (0.05) of trials or evals that may be missing before the gate is undecided.",
    metavar="N",
)
UNDECIDABLE = flag("pass", "The result of the gate if neither a regression nor its absence is shown.")
HIDDEN_TESTS = flag(
    0.0, "Hide this share of the tests from subjects, and score both parts.", min=0, max=0.9, metavar="SHARE"
)
HIDDEN_SEED = flag(0, "Decides which tests are hidden.", metavar="N")


HTML = flag(None, "Also write a self-contained page to this file.", metavar="FILE")
CONFIG = flag(None, "The configuration. Default: the nearest one.", "--config", metavar="FILE")
ROUNDS = flag(1, "How often to try each case.", min=1)
MIN_COVERAGE = flag(
    None,
    "Fail if the cases exercise less of all tools, parameters and enum values. Default: minCoverage.",
    min=0,
    max=1,
    metavar="SHARE",
)
HEADERS = flag(None, "A header for servers at a URL: 'Authorization: Bearer ${TOKEN}'.", "--header", metavar="TEXT")


class GateFlags(Flags):
    """The options of commands that compare with a baseline."""

    margin: float | None = MARGIN
    undecidable: UndecidableRule = UNDECIDABLE
    allow_undecided: str = ALLOW_UNDECIDED


class LogFlags(Flags):
    """The options of commands that read logs of other tools."""

    scorer: list[str] | None = flag(None, "Of a log of another tool, use only this scorer.")
    scale: list[str] | None = flag(
        None,
        "The worst and the best value of the scorers of a log, or of one: 1:10 or NAME=1:10.",
        metavar="LOW:HIGH",
    )
    threshold: float | None = flag(
        None, "The score from which a trial of a log passes. Default: 1 if all scores are pass or fail.", min=0, max=1
    )
    format_: LogFormat | None = flag(
        None,
        f"The format of a log: {', '.join(get_args(LogFormat))}. Default: by its content.",
        "--format",
        metavar="FORMAT",
    )

    def choices(self) -> "Choices":
        """Return what these flags say about a log."""
        from bakeoff.logs.reader import Choices, ScoreScale

        scales, scorers = map(ScoreScale.parse, self.scale or ()), tuple(self.scorer or ())
        return Choices(format=self.format_, scorers=scorers, scales=tuple(scales), threshold=self.threshold)

    def find(self, results: Path, name: str) -> "list[Source]":
        """Find a run, or the scorers of a log. Raise UsageError if one of these flags is given and it is no log."""
        from bakeoff.logs.reader import Choices, ForeignLogReader
        from bakeoff.report.readers import Source, find_source, is_log, known_readers

        foreign, path = ForeignLogReader(self.choices()), Path(name)
        if foreign.choices == Choices():
            source = find_source(results, name, (*known_readers()[:-1], foreign))
        elif is_log(path):
            source = Source(path, foreign)
        else:
            told = f"{name} is no log of another tool"
            raise UsageError(f"{told}: --scorer, --scale, --threshold and --format are for these only: leave them out")
        return [Source(*each) for each in foreign.apart(path)] if source.reader is foreign else [source]


class PlanFlags(Flags):
    """The options of every command that runs a plan."""

    results: NewResults = Path("results")
    dry_run: bool = flag(False, "Print the plan and run nothing.")
    max_cost: MaxCost = None
    max_total_tokens: int | None = flag(None, "Start no more trials once this many tokens are used.", min=1)
    max_seconds: float | None = flag(None, "Start no more trials after this time.", metavar="SECONDS")
    replay: ReplayMode = flag(
        "off",
        "Answer model calls from recordings: auto records new calls, record records all again, strict makes none.",
        envvar="BAKEOFF_REPLAY",
    )
    recordings: Path = flag(
        Path(".bakeoff/recordings"), "The folder of recorded model calls.", metavar="DIR", envvar="BAKEOFF_RECORDINGS"
    )
    upload_interval: float = flag(
        10.0, "With --results in an object store: the time between uploads.", min=0.1, metavar="SECONDS"
    )
    trace: bool = flag(False, "Send OpenTelemetry spans (needs the extra `otel`).")
    executor: ExecutorName = flag("local", "Run trials here, or on the nodes of a Ray cluster (needs the extra `ray`).")
    ray_address: str | None = flag(
        None,
        "With --executor ray: the cluster, such as 10.0.0.1:6379. Default: RAY_ADDRESS, else a Ray on this machine.",
        metavar="ADDRESS",
    )


class SelectionFlags(Flags):
    """Options that choose trials of a plan: those that decide a comparison, or one shard."""

    until_decided: bool = flag(False, "Compare in pairs after every case; skip trials that cannot change the result.")
    # `applied` says what is wrong with a margin that is out of range.
    margin: float | None = flag(None, "The largest difference that does not matter, such as 0.05.", metavar="SHARE")
    shard: str | None = flag(
        None,
        "Run only part I of N of the cases, such as 2/4; `bakeoff merge` joins the runs of all parts.",
        metavar="I/N",
        envvar="BAKEOFF_SHARD",
    )

    def applied(self, plan: "Plan", *, largest: int = 0) -> "Plan":
        """Apply these options to a plan: run it until it is decided, or run only one shard.

        See `Plan.take_shard` for `largest`.
        """
        from bakeoff.plan import UntilDecided

        if self.margin is not None and not self.until_decided:
            raise UsageError(f"--margin {self.margin:g} is for --until-decided: add it, or leave out --margin")
        if self.margin is not None and not 0 < self.margin <= 1:
            raise UsageError(f"--margin {self.margin:g} is not above 0 and at most 1: 0.05 stands for 5 points")
        plan = plan.with_changes(until_decided=UntilDecided.in_new_order(self.margin)) if self.until_decided else plan
        return plan if self.shard is None else plan.take_shard(*parse_shard(self.shard), largest=largest)

    def has_no_case_of(self, plan: "Plan", largest: int) -> bool:
        """Tell whether this shard has none of the cases of a plan."""
        number, of = parse_shard(self.shard) if self.shard is not None else (1, 1)
        return len(plan.cases) < number <= of <= largest


def parse_shard(text: str) -> tuple[int, int]:
    """Parse a shard such as `2/4`: its number, and the number of all shards."""
    try:
        return shard_in(text)
    except ValueError as error:
        raise UsageError(f"--shard {text}: {SHARD_FORM}") from error


class JobFlags(PlanFlags):
    """The options of commands that run a plan in workspaces."""

    jobs: Jobs = None
    keep_workspaces: bool = flag(False, "Keep the folder of each trial.")


class RunFlags(JobFlags):
    """The options of commands that start a run in workspaces."""

    sandbox: Sandbox = "auto"


class VerifyFlags(Flags):
    """The options of commands that check cases."""

    jobs: Jobs = None
    sandbox: Sandbox = "auto"


class PrintFlags(Flags):
    """Options that choose what to print instead of a table, and where."""

    as_json: AsJson = False
    markdown: Markdown = False
    output: Path | None = flag(
        None, "Write the JSON or Markdown to this file, and print the table too.", "--output", "-o", metavar="FILE"
    )

    @property
    def prints_table(self) -> bool:
        """Tell whether the table is printed to stdout, because nothing else is."""
        return self.output is not None or not (self.as_json or self.markdown)

    def check(self) -> None:
        """Raise an error if a requested output cannot be written."""
        if self.as_json and self.markdown:
            raise UsageError("--json and --markdown both print to stdout: use only one of them")
        if self.output is None:
            return
        if not (self.as_json or self.markdown):
            raise UsageError(f"-o {self.output} is for JSON or Markdown: add --json or --markdown")
        from bakeoff.report.output_files import refuse_unwritable

        refuse_unwritable("-o", self.output)

    def write(self, text: str) -> tuple[Path, ...]:
        """Write the JSON or Markdown to stdout or the file; return the files that were written."""
        if self.output is None:
            from bakeoff.cli.console import out

            out().file.write(text)
            return ()
        from bakeoff.report.output_files import replace_text

        with replace_text(self.output) as file:
            file.write(text)
        return (self.output,)


class OutputFlags(PrintFlags):
    """Options that choose the output at the end of a run, besides its own files."""

    junit: Path | None = flag(None, "Also write JUnit XML to this file.", metavar="FILE")
    github: bool = flag(False, "Also write GitHub annotations and a step summary.")

    def check(self) -> None:
        """Raise an error if a requested output cannot be written."""
        super().check()
        if self.junit is not None:
            self.outputs()

    def outputs(self) -> "CiOutputs":
        """Return the outputs for continuous integration. Raise an error if one of them cannot be written."""
        from bakeoff.report.exports.ci import CiOutputs

        return CiOutputs(self.junit, self.github)


class EndingFlags(OutputFlags):
    """Options that choose the output at the end of a run, and its exit code."""

    fail_under: float | None = flag(None, "Pass if every score is at least this.", min=0, max=1, metavar="SCORE")
    allow_undecided: str = ALLOW_UNDECIDED
    exit_zero: ExitZero = False

    def check(self) -> None:
        """Raise an error if a requested output cannot be written, or an option cannot be understood."""
        super().check()
        if self.allow_undecided != _ALL_DECIDED:
            allowed_in(self.allow_undecided)


class ReportFlags(PrintFlags):
    """Options that choose how to show a report."""

    html: Path | None = HTML


def allowed_in(text: str) -> "Allowance":
    """Parse the value of --allow-undecided. Raise UsageError if it is neither a number nor a share."""
    from bakeoff.report.gates import Allowance

    try:
        return Allowance.parse(text)
    except ValueError as error:
        raise UsageError(
            f"--allow-undecided {text!r}: give a number such as 3, or a share such as 0.05 or 5%"
        ) from error
