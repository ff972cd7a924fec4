"""The options that several commands share, each declared once.

A subclass of `Flags` holds the options of one purpose. `with_flags` expands a parameter of such a type into one option
for each field. Start-up must stay fast, so this module imports nothing heavy.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from typer import Argument, Option

from bakeoff._kernel.choices import ReplayMode, SandboxName
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.report.ci import CiOutputs

Results = Annotated[Path, Option(metavar="DIR", help="The folder that holds the runs.")]
RunName = Annotated[str, Argument(help="The folder or name of a run, or `latest`.")]
Jobs = Annotated[int, Option(min=1, metavar="N", help="How many trials to run at the same time.")]
Sandbox = Annotated[SandboxName, Option(help="The sandbox that commands run in.")]
Refresh = Annotated[bool, Option("--refresh", help="Fetch the AI Gateway's list of models again.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of a table.")]
MaxCost = Annotated[float | None, Option(metavar="USD", help="Stop at this cost; trials in flight are cut short.")]
NoOpen = Annotated[bool, Option("--no-open", help="Do not open the browser.")]
ExitZero = Annotated[bool, Option("--exit-zero", help="Exit with 0 even if something failed.")]
Output = Annotated[str, Option("--output", "-o", metavar="FILE", help="The file to write; `-` is stdout.")]


@dataclass(slots=True)
class _Declared:
    """An option that a class of flags declares."""

    default: Any
    text: str
    names: tuple[str, ...]
    settings: dict[str, Any]

    def option(self, name: str, hint: Any, default: Any) -> Any:
        """Return the option for typer. The name is that of the field unless others are declared."""
        names, text, settings = self.names, self.text, self.settings
        if default is False and not names:
            names = (f"--{name.replace('_', '-')}",)
        if get_args(hint)[:1] == (list[str],):
            settings, text = {"metavar": "NAME", **settings}, f"{text} Repeatable."
        elif int in (hint, *get_args(hint)):
            settings = {"metavar": "N", **settings}
        return Option(*names, help=text, **settings)


def flag(default: Any, text: str, *names: str, **settings: Any) -> Any:
    """Declare an option in a class of flags: its default, its help text, and the settings of `typer.Option`.

    Options that are off by default have no `--no-…` form, and options with a list can be repeated.
    """
    return _Declared(default, text, names, settings)


class Flags:
    """A group of options, one for each field. Unlike a dataclass, it takes no time at start-up."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(self.defaults() | given)

    @classmethod
    def hints(cls) -> dict[str, Any]:
        """Return the types of all fields, those of base classes first."""
        return {
            name: hint for base in reversed(cls.__mro__) for name, hint in vars(base).get("__annotations__", {}).items()
        }

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the defaults of all fields."""
        declared = {name: getattr(cls, name) for name in cls.hints()}
        return {name: one.default if isinstance(one, _Declared) else one for name, one in declared.items()}

    @classmethod
    def parameters(cls, defaults: "Flags | None") -> list[inspect.Parameter]:
        """Return one parameter for each field, with other defaults where some are given."""
        found = []
        values = cls.defaults() if defaults is None else vars(defaults)
        for name, hint in cls.hints().items():
            declared, default = getattr(cls, name), values[name]
            if isinstance(declared, _Declared):
                hint = Annotated[hint, declared.option(name, hint, default)]
            found.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))
        return found


class PlanFlags(Flags):
    """The options of every command that runs a plan."""

    results: Results = Path("results")
    dry_run: bool = flag(False, "Print the plan and run nothing.")
    max_cost: MaxCost = None
    max_total_tokens: int | None = flag(None, "Start no more trials once this many tokens are used.", min=1)
    max_seconds: float | None = flag(None, "Start no more trials after this time.", metavar="SECONDS")
    replay: ReplayMode = flag(
        "off",
        "auto: use recorded model calls and record new ones; record: record all again; strict: no new calls.",
        envvar="BAKEOFF_REPLAY",
    )
    recordings: Path = flag(
        Path(".bakeoff/recordings"), "The folder of recorded model calls.", metavar="DIR", envvar="BAKEOFF_RECORDINGS"
    )
    trace: bool = flag(False, "Send OpenTelemetry spans (needs the extra `otel`).")

    def options(self) -> RunOptions:
        """Return the run options that these flags stand for."""
        known = {one.name for one in fields(RunOptions)}
        return RunOptions(**{name: value for name, value in values_of(self).items() if name in known})


class JobFlags(PlanFlags):
    """The options of commands that run a plan in workspaces."""

    jobs: Jobs = 8
    keep_workspaces: bool = flag(False, "Keep the folder of each trial.")


class RunFlags(JobFlags):
    """The options of commands that start a run in workspaces."""

    sandbox: Sandbox = "auto"


class ResumeFlags(JobFlags):
    """The options of `bakeoff resume`."""

    sandbox: SandboxName | None = flag(None, "The sandbox that commands run in. Default: the one of the run.")


class OutputFlags(Flags):
    """Choose the output of a run at its end, besides its own files."""

    as_json: AsJson = False
    junit: Path | None = flag(None, "Also write JUnit XML.", metavar="FILE")
    markdown: Path | None = flag(None, "Also write Markdown, for a pull request.", metavar="FILE")
    github: bool = flag(False, "Also write GitHub annotations and a step summary.")

    def outputs(self) -> "CiOutputs":
        """Return the files for continuous integration; raise if one of them could not be written."""
        from bakeoff.report.ci import CiOutputs

        return CiOutputs(self.junit, self.markdown, self.github)


class EndingFlags(OutputFlags):
    """Choose the output of a run at its end, and its exit code."""

    fail_under: float | None = flag(None, "Pass if every score is at least this.", min=0, max=1, metavar="SCORE")
    exit_zero: ExitZero = False


class ReportFlags(Flags):
    """How a report is shown."""

    as_json: AsJson = False
    markdown: bool = flag(False, "Print Markdown instead of a table.")
    html: Path | None = flag(None, "Write a self-contained page to this file.", metavar="FILE")


def values_of(flags: Flags) -> dict[str, Any]:
    """Return the fields that are set, by name."""
    return {name: value for name, value in vars(flags).items() if value is not None}


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Expand each class of flags among the parameters of a command into one option for each of its fields.

    A default of the parameter sets the defaults of the options; otherwise they are those of the class.
    """
    groups: dict[str, type[Flags]] = {}
    expanded: list[inspect.Parameter] = []
    for name, hint in command.__annotations__.items():
        default = (command.__kwdefaults__ or {}).get(name, inspect.Parameter.empty)
        if isinstance(hint, type) and issubclass(hint, Flags):
            groups[name] = hint
            expanded += hint.parameters(None if default is inspect.Parameter.empty else default)
        elif name != "return":
            expanded.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))

    @wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field: given.pop(field) for field in group.hints()})
        command(**given)

    vars(call).update(
        __signature__=inspect.Signature(expanded),
        __annotations__={parameter.name: parameter.annotation for parameter in expanded},
    )
    return call
