"""The options of all commands, each declared once. Start-up must stay fast, so this module imports nothing heavy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, CallbackParam, Context, Option

from bakeoff._kernel.choices import (
    SHARD_FORM,
    ComparisonGate,
    ExecutorName,
    ReplayMode,
    SandboxName,
    UndecidableRule,
    shard_in,
)
from bakeoff._kernel.environment import JOBS_RULE
from bakeoff.cli.declare import Flags, flag
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.plan import Plan
    from bakeoff.report.exports.ci import CiOutputs

_RESULTS_HELP = "The folder that holds the runs, or s3://, gs:// or az://bucket/folder."


def _nearest_results(context: Context, parameter: CallbackParam, value: Path) -> Path:
    """Return the folder that was named or, by default, the nearest one here or above that holds runs."""
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source.name != "DEFAULT":
        return value
    from bakeoff.storage.places import nearest_results

    return nearest_results(value)


Results = Annotated[Path, Option(metavar="DIR", help=_RESULTS_HELP, callback=_nearest_results)]
NewResults = Annotated[Path, Option(metavar="DIR", help=_RESULTS_HELP)]


def _complete_run(incomplete: str) -> list[str]:
    """Return the names of runs for the shell, the latest first."""
    from bakeoff.storage.places import nearest_results
    from bakeoff.storage.run_folder import LATEST, run_folders

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
Refresh = Annotated[bool, Option("--refresh", help="Fetch the AI Gateway's list of models again.")]
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
Output = Annotated[str, Option("--output", "-o", metavar="FILE", help="The file to write; `-` is stdout.")]
RequireAudit = Annotated[
    Path | None,
    Option(metavar="FILE", help="Use only cases that passed this audit (audit.json) and have not changed since."),
]
AgentFiles = Annotated[
    list[Path] | None,
    Option("--agent-file", metavar="FILE", help="A YAML file that describes an agent of your own. Repeatable."),
]
ConfigPath = Annotated[
    Path | None,
    Argument(
        metavar="PATH",
        help="A YAML file, or a folder of them. Default: the nearest configuration here or in a folder above.",
    ),
]
SuitesPath = Annotated[
    Path | None,
    Argument(
        metavar="PATH",
        help="A YAML file, a folder of them, or a part of the names of suites below the current folder. "
        "Default: all suites below the current folder, or else the nearest configuration above.",
    ),
]


MARGIN = flag(None, "The largest difference that does not matter, such as 0.05.", min=0, max=1, metavar="SHARE")
UNDECIDABLE = flag("pass", "The result of the gate if neither a regression nor its absence is shown.")
HIDDEN_TESTS = flag(
    0.0, "Hide this share of the tests from subjects, and score both parts.", min=0, max=0.9, metavar="SHARE"
)
WITH_FILES = flag(
    None,
    "Lay the files of DIR over the workspace, those in DIR/home over HOME, and compare with and without.",
    "--with",
    metavar="NAME=DIR",
)
WITH_TEXT = flag(
    None, "Add the texts of a file or folder to the system prompt, and compare.", "--with", metavar="NAME=PATH"
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
    """Which trials of a plan are run: those that decide a comparison, or one shard."""

    until_decided: bool = flag(False, "Compare subjects in pairs after every case; run no trial that decides nothing.")
    margin: float | None = flag(
        None, "The largest difference that does not matter, such as 0.05.", metavar="SHARE"
    )  # `applied` says what is wrong with one that is out of range
    shard: str | None = flag(
        None,
        "Run only part I of N of the cases, such as 2/4; `bakeoff merge` joins the runs of all parts.",
        metavar="I/N",
        envvar="BAKEOFF_SHARD",
    )

    def applied(self, plan: "Plan", *, largest: int = 0) -> "Plan":
        """Return the part of the plan that was asked for, to be run until it is decided if that was.

        `largest` is as for `Plan.take_shard`.
        """
        from bakeoff.plan import UntilDecided

        if self.margin is not None and not self.until_decided:
            raise UsageError(f"--margin {self.margin:g} is for --until-decided: add it, or leave out --margin")
        if self.margin is not None and not 0 < self.margin <= 1:
            raise UsageError(f"--margin {self.margin:g} is not above 0 and at most 1: 0.05 stands for 5 points")
        plan = plan.with_changes(until_decided=UntilDecided(margin=self.margin)) if self.until_decided else plan
        return plan if self.shard is None else plan.take_shard(*parse_shard(self.shard), largest=largest)

    def has_no_case_of(self, plan: "Plan", largest: int) -> bool:
        """Tell whether the shard has no case of a plan, because a larger one is parted alike."""
        number, of = parse_shard(self.shard) if self.shard is not None else (1, 1)
        return len(plan.cases) < number <= of <= largest


def parse_shard(text: str) -> tuple[int, int]:
    """Return the number of a shard, and how many there are."""
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


class ResumeFlags(JobFlags):
    """The options of `bakeoff resume`."""

    results: Results = Path("results")
    sandbox: SandboxName | None = flag(None, "The sandbox that commands run in. Default: the one of the run.")
    trust: Trust = False


class RescoreFlags(Flags):
    """The options of `bakeoff rescore`."""

    results: Results = Path("results")
    scorers: list[str] | None = flag(
        None,
        'A scorer to use instead of those of the run: a kind (`exact`) or JSON (`{"kind": …}`).',
        "--scorer",
        metavar="SCORER",
    )
    rescore_all: bool = flag(False, "Also score attempts that these scorers have scored before.", "--all")
    jobs: Jobs = None
    sandbox: Sandbox = "auto"
    trust: Trust = False


class VerifyFlags(Flags):
    """The options of commands that check cases."""

    jobs: Jobs = None
    sandbox: Sandbox = "auto"


class AuditFlags(Flags):
    """How thorough `bakeoff audit` is. The fields are those of `AuditSettings`."""

    only: list[str] | None = flag(None, "Audit only this suite or exercise.", "--case")
    rounds: int = flag(5, "How often to grade the reference and the starting files.", min=1)
    mutants: int = flag(20, "How many faults to try in each reference.", min=0)
    cheats: int = flag(10, "How many cheats to try on each case.", min=0)
    seed: int = flag(0, "The seed that chooses the faults.")
    least_killed: float = flag(
        0.75, "The share of faults that tests must notice.", "--min-killed", min=0, max=1, metavar="SHARE"
    )
    output: Path = flag(Path("results/audit"), "The folder to write to.", "--output", "-o", metavar="DIR")


class PrintFlags(Flags):
    """Choose what is printed instead of a table, and where it goes."""

    as_json: AsJson = False
    markdown: Markdown = False
    output: Path | None = flag(
        None, "Write the JSON or Markdown to this file, and print the table too.", "--output", "-o", metavar="FILE"
    )

    @property
    def prints_table(self) -> bool:
        """Return whether the table goes to stdout: nothing else does."""
        return self.output is not None or not (self.as_json or self.markdown)

    def check(self) -> None:
        """Raise an error if what is asked for cannot be written."""
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
    """Choose the output of a run at its end, besides its own files."""

    junit: Path | None = flag(None, "Also write JUnit XML to this file.", metavar="FILE")
    github: bool = flag(False, "Also write GitHub annotations and a step summary.")

    def outputs(self) -> "CiOutputs":
        """Return the outputs for continuous integration; raise if something could not be written."""
        from bakeoff.report.exports.ci import CiOutputs

        self.check()
        return CiOutputs(self.junit, self.github)


class EndingFlags(OutputFlags):
    """Choose the output of a run at its end, and its exit code."""

    fail_under: float | None = flag(None, "Pass if every score is at least this.", min=0, max=1, metavar="SCORE")
    exit_zero: ExitZero = False


class ReportFlags(PrintFlags):
    """How a report is shown."""

    html: Path | None = HTML


class CompareFlags(Flags):
    """The options of `bakeoff compare`."""

    candidate: Annotated[
        str | None, Argument(metavar="CANDIDATE", help="The same. Leave it out to compare two subjects of one run.")
    ] = None
    results: Results = Path("results")
    subject_a: str | None = flag(None, "The subject to take from the baseline.", metavar="NAME")
    subject_b: str | None = flag(None, "The subject to take from the candidate.", metavar="NAME")
    gate: ComparisonGate = flag("verdict", "With --margin, `regression` allows a gain of any size.")
    margin: float | None = MARGIN
    undecidable: UndecidableRule = UNDECIDABLE
    details: int = flag(5, "How many changed cases to show in full.", min=0)
    require_calibrated_judge: bool = flag(
        False, "Decide by scores that labels correct; refuse (exit 3) if a judge has too few labels."
    )
    exit_zero: ExitZero = False


class LabelFlags(Flags):
    """The options of `bakeoff label`."""

    results: Results = Path("results")
    scorer: str | None = flag(None, "The judge to label for, if there are several.", metavar="NAME")
    labeller: str | None = flag(None, "Who labels. Default: your login name.", metavar="NAME")
    count: int | None = flag(
        None, "Answers to label, with those of earlier sessions. Default: 30 of each subject.", min=1
    )
    port: Port = 0
    no_open: NoOpen = False


class JudgeAuditFlags(Flags):
    """The options of `bakeoff judge audit`."""

    results: Results = Path("results")
    scorer: str | None = flag(None, "The judge to audit, if there are several.", metavar="NAME")
    cut: float | None = flag(
        None,
        "The score from which on an answer passes. Default: the run's threshold, or 0.5.",
        "--threshold",
        min=0,
        max=1,
        metavar="SCORE",
    )
    repeat: int | None = flag(None, "Ask the judge so often about each labelled answer, for its flips.", min=2)
    trust: Trust = False


class VersionFlags(Flags):
    """The options of `bakeoff mcp compare`."""

    results: Results = Path("results")
    exit_zero: ExitZero = False


class TuneFlags(Flags):
    """The options of `bakeoff mcp tune`."""

    path: Path | None = CONFIG
    descriptions: list[str] | None = flag(None, "A description to try.", "--description", metavar="TEXT")
    versions: Path | None = flag(None, "A file of descriptions, with lines of --- between them.", metavar="FILE")
    propose: int = flag(0, "Let a model propose this many.", min=0, max=20, metavar="N")
    proposer: str | None = flag(None, "The model that proposes. Default: the model under test.", metavar="NAME")
    model: str | None = flag(None, "The model under test. Default: the first of modelsToTest.", metavar="NAME")
    rounds: int | None = flag(None, "How often to try each case. Default: testRound.", min=1)
    hold_out: float = flag(0.5, "The share of cases that confirm the winner.", min=0.1, max=0.9, metavar="SHARE")
    patch: Path | None = flag(None, "Write the patch of a confirmed winner to this file.", metavar="FILE")


class SelfCheckFlags(Flags):
    """The options of `bakeoff selfcheck`."""

    run: Annotated[
        str | None, Argument(metavar="RUN", help="The run whose plan to use. Default: the plan of the demo.")
    ] = None
    results: NewResults = Path("results")
    subject: str | None = flag(None, "The subject of the plan to run.", metavar="NAME")
    rounds: int | None = flag(None, "How often to try each case. Default: as often as the run.", min=1)
    jobs: Jobs = None
    sandbox: Sandbox = "auto"
    max_cost: MaxCost = None
    trust: Trust = False


class MergeFlags(Flags):
    """The options of `bakeoff merge`."""

    output: str = flag(
        "-",
        "Of files: the file to write, `-` is stdout. Of run folders: the folder of results, `-` is results.",
        "--output",
        "-o",
        metavar="PATH",
    )
    html: Path | None = HTML
    shards: int | None = flag(None, "How many shards there are; refuse if one is missing.", min=1, metavar="N")
    min_pass_rate: float | None = flag(None, "Like --eval-min-pass-rate of pytest.", min=0, max=1, metavar="SHARE")
    min_score: float | None = flag(None, "Like --eval-min-score of pytest.", min=0, max=1, metavar="SCORE")
    baseline: Path | None = flag(None, "Like --eval-baseline of pytest.", metavar="FILE")
    allow_undecided: str = flag("0", "Like --eval-allow-undecided of pytest.", metavar="N")
    margin: float | None = MARGIN
    undecidable: UndecidableRule = UNDECIDABLE
    require_calibrated_judge: bool = flag(
        False, "Refuse (exit 3) if a judge has too few labels in the runs of --results."
    )
    results: Results = Path("results")


class SuiteFlags(Flags):
    """Which suites. The fields are those of `ComponentsRequest`."""

    suites: Path | None = flag(
        None, "The folder of suites. Default: `tests` if it has suites, else the bundled.", metavar="DIR"
    )
    only: list[str] | None = flag(None, "Use only this suite.", "--suite")


class ComponentsFlags(SuiteFlags):
    """Which suites and models, and how the models are asked."""

    models: list[str] | None = flag(None, "A model, such as local:smollm2, oracle or nop.", "--model")
    mcp: list[str] | None = flag(
        None, "Servers to use: none, http[:URL], stdio[:COMMAND], or several joined by ` + `.", metavar="SERVER"
    )
    treatments: list[str] | None = WITH_TEXT
    test_tool: bool = flag(True, "Let models run the tests before they submit.")
    pricing: bool = flag(True, "Compute what the calls cost.")
    hide_tests: bool = flag(False, "Leave the tests out of the prompt.")
    hidden_tests: float = HIDDEN_TESTS
    hidden_seed: int = HIDDEN_SEED
    rounds: int = ROUNDS
    max_steps: int | None = flag(None, "Replies of a model per trial. Default: 10, or 2 for a local model.", min=1)
    temperature: float | None = flag(
        None, "The temperature of the models. Default: their own.", min=0, metavar="NUMBER"
    )
    seed: int | None = flag(None, "The seed of the first round; later rounds count up.")
    max_tokens: int | None = flag(None, "The longest reply of a model, in tokens; a run has --max-total-tokens.", min=1)
    pictures: bool = flag(False, "Take a picture of each component in Chromium, after grading.")


class ExerciseFlags(Flags):
    """Which exercises, and how they are tested. The fields are those of `ExercisesRequest`."""

    exercises: Path | None = flag(
        None, "The checkout of a track, or one exercise. Default: the bundled exercises.", metavar="DIR"
    )
    wanted: list[str] | None = flag(None, "Names of exercises, separated by commas, a number, or all.", "--exercise")
    test_timeout: float = flag(
        60.0, "The time limit of one run of an exercise's tests.", min=1, max=604_800, metavar="SECONDS"
    )
    test_command: str | None = flag(
        None, "The test command, instead of the track's; its exit code decides.", metavar="COMMAND"
    )
    type_check: bool = flag(True, "Fail TypeScript answers with type errors, as the track does.")
    unskip: bool = flag(True, "Also run the tests that a track marks as skipped.")


class AgentFlags(ExerciseFlags):
    """Which agents, and how they are asked."""

    agents: list[str] | None = flag(None, "An agent, such as claude, oracle, nop or cheat.", "--agent")
    models: list[str] | None = flag(None, "A model for every agent. Default: the agent's own.", "--model")
    providers: list[str] | None = flag(None, "A provider for every agent. Default: the agent's own.", "--provider")
    agent_files: AgentFiles = None
    treatments: list[str] | None = WITH_FILES
    rounds: int = ROUNDS
    hidden_tests: float = HIDDEN_TESTS
    hidden_seed: int = HIDDEN_SEED
    timeout: float = flag(300.0, "The time limit of an agent on one exercise.", min=1, max=604_800, metavar="SECONDS")
    tries: int = flag(1, "Tries at an exercise; a later one sees what the tests said.", min=1, max=5)
    test_only: bool = flag(False, "Run no agent; only test the files that are there.")
    custom_instruction: str | None = flag(None, "Text to append to every prompt.", metavar="TEXT")
    use_login: bool = flag(False, "Give agents the login files from your home folder that their YAML lists.")
    network: bool = flag(False, "Let metered agents reach more than their provider.")
    show_progress: bool = flag(False, "Show what agents change while they work.")


class EvalFlags(Flags):
    """Which part of a configuration of prompts. The fields are those of `EvalRequest`."""

    path: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="A bakeoff.yaml, pyproject.toml or promptfooconfig.yaml, or a folder with one. Default: this folder.",
        ),
    ] = None
    prompts: list[str] | None = flag(None, "Only this prompt.", "--prompt")
    subjects: list[str] | None = flag(None, "Only this subject.", "--subject")
    cases: list[str] | None = flag(None, "Only cases with this name or tag.", "--case")
    rounds: int | None = flag(None, "Overrides `rounds`.", min=1)


class EvalRunFlags(PlanFlags):
    """How a configuration of prompts is run. Without them, the `limits` of the file count."""

    jobs: Jobs = None
    keep_workspaces: bool = flag(False, "Keep the folder of each trial.")
    sandbox: Sandbox = "auto"


class EvaluationFlags(Flags):
    """Which part of a configuration. The fields are those of `EvaluationRequest`."""

    path: SuitesPath = None
    prompts: list[str] | None = flag(None, "Only cases with this text in the prompt.", "--prompt", metavar="TEXT")
    models: list[str] | None = flag(None, "Only this model of modelsToTest.", "--model")
    cases: list[str] | None = flag(None, "Only cases with this name, number or tag.", "--case")
    rounds: int | None = flag(None, "How often to try each case. Default: testRound.", min=1)
    jobs: int | None = flag(None, "How many trials to run at the same time. Default: concurrencyLimit, or 5.", min=1)
    min_coverage: float | None = MIN_COVERAGE
    report: Path = flag(Path("mcp-report"), "The folder of the reports.", metavar="DIR")
    headers: list[str] | None = HEADERS


class DirectFlags(Flags):
    """Which servers of a configuration, or some that are named directly. Subclasses say where the configuration is."""

    only: list[str] | None = flag(None, "Only this server of the configuration.", "--server")
    commands: list[str] | None = flag(
        None, "The command of a server, instead of a configuration.", "--command", metavar="TEXT"
    )
    urls: list[str] | None = flag(None, "The URL of a server, instead of a configuration.", "--url", metavar="URL")
    headers: list[str] | None = HEADERS
    path: Path | None = None


class ServerFlags(DirectFlags):
    """Which servers, with the configuration as the argument."""

    path: ConfigPath = None


class ServerOptions(DirectFlags):
    """Which servers, with the configuration as an option."""

    path: Path | None = CONFIG
