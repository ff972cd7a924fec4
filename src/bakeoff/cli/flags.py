"""The options that several commands share, each declared once.

A dataclass holds the options of one purpose. `with_flags` expands a parameter of such a type into one option for each
field. Start-up must stay fast, so this module imports nothing heavy.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from bakeoff._kernel.choices import ReplayMode, SandboxName
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.report.ci import CiOutputs

Results = Annotated[Path, typer.Option(metavar="DIR", help="The folder that holds the runs.")]
RunName = Annotated[str, typer.Argument(help="The folder or name of a run, or `latest`.")]
Jobs = Annotated[int, typer.Option(min=1, metavar="N", help="How many trials to run at the same time.")]
Sandbox = Annotated[SandboxName, typer.Option(help="The sandbox that commands run in.")]
Refresh = Annotated[bool, typer.Option("--refresh", help="Fetch the AI Gateway's list of models again.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
MaxCost = Annotated[float | None, typer.Option(metavar="USD", help="Start no more trials once this much is spent.")]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open the browser.")]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 even if something failed.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The file to write; `-` is stdout.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFlags:
    """The options of every command that runs a plan."""

    results: Results = Path("results")
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False
    max_cost: MaxCost = None
    max_seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Start no more trials after this time.")
    ] = None
    replay: Annotated[
        ReplayMode,
        typer.Option(
            envvar="BAKEOFF_REPLAY",
            help="auto: use recorded model calls and record new ones; record: record all again; strict: no new calls.",
        ),
    ] = "off"
    recordings: Annotated[
        Path, typer.Option(metavar="DIR", envvar="BAKEOFF_RECORDINGS", help="The folder of recorded model calls.")
    ] = Path(".bakeoff/recordings")
    trace: Annotated[bool, typer.Option("--trace", help="Send OpenTelemetry spans (needs the extra `otel`).")] = False

    def options(self) -> RunOptions:
        """Return the run options that these flags stand for."""
        known = {field.name for field in fields(RunOptions)}
        return RunOptions(**{name: value for name, value in values_of(self).items() if name in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlags(PlanFlags):
    """The options of commands that run a plan in workspaces."""

    jobs: Jobs = 8
    keep_workspaces: Annotated[bool, typer.Option("--keep-workspaces", help="Keep the folder of each trial.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags(JobFlags):
    """The options of commands that start a run in workspaces."""

    sandbox: Sandbox = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeFlags(JobFlags):
    """The options of `bakeoff resume`."""

    sandbox: Annotated[
        SandboxName | None, typer.Option(help="The sandbox that commands run in. Default: the one of the run.")
    ] = None
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Start no more trials once this many tokens are used.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFlags:
    """What a run prints and writes at its end, besides its own files."""

    as_json: AsJson = False
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")] = None
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Also write Markdown, for a pull request.")
    ] = None
    github: Annotated[bool, typer.Option("--github", help="Also write GitHub annotations and a step summary.")] = False

    def outputs(self) -> "CiOutputs":
        """Return the files for continuous integration; raise if one of them could not be written."""
        from bakeoff.report.ci import CiOutputs

        return CiOutputs(self.junit, self.markdown, self.github)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingFlags(OutputFlags):
    """What a run prints and writes at its end, and which exit code it has."""

    fail_under: Annotated[
        float | None, typer.Option(min=0, max=1, metavar="SCORE", help="Pass if every score is at least this.")
    ] = None
    exit_zero: ExitZero = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFlags:
    """How a report is shown."""

    as_json: AsJson = False
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown instead of a table.")] = False
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a self-contained page to this file.")
    ] = None


def values_of(flags: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are set, by name."""
    values = {field.name: getattr(flags, field.name) for field in fields(flags)}
    return {name: value for name, value in values.items() if value is not None}


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Expand each dataclass among the parameters of a command into one option for each of its fields.

    A default of the parameter sets the defaults of the options; otherwise they are those of the class.
    """
    groups: dict[str, type] = {}
    expanded: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if is_dataclass(parameter.annotation) and isinstance(parameter.annotation, type):
            groups[parameter.name] = parameter.annotation
            expanded += _options_of(parameter.annotation, parameter.default)
        else:
            expanded.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    vars(call).update(
        __signature__=inspect.Signature(expanded),
        __annotations__={parameter.name: parameter.annotation for parameter in expanded},
    )
    return call


def _options_of(group: type, defaults: object) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    options = []
    for field in fields(group):
        default = field.default if defaults is inspect.Parameter.empty else getattr(defaults, field.name)
        default = inspect.Parameter.empty if default is MISSING else default
        kind = inspect.Parameter.KEYWORD_ONLY
        options.append(inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name]))
    return options
