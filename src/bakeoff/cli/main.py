"""Start the commands of `bakeoff`.

Start-up must stay fast, so this module imports nothing heavy: the module of a command is imported when it is used.
"""

import io
import os
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from typer import Option

from bakeoff._kernel.text import escaped_lines
from bakeoff._version import __version__
from bakeoff.cli.declare import add_lazily, group_of
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.storage.redacted_stream import redact_streams

COMMANDS = (
    ("init", "Write a small start that runs as it is.", "init"),
    ("demo", "Show a slice of everything with a model that runs on this machine.", "demo"),
    ("eval", "Compare models, commands and functions on your own prompts, as bakeoff.yaml says.", "eval"),
    ("run", "Benchmark models on component suites: each writes code, the suite's tests grade it.", "run"),
    ("agents", "Benchmark command-line coding agents on exercises.", "agents"),
    ("mcp", "Test how well models use the tools of MCP servers.", "mcp"),
    (
        "resume",
        "Continue a stopped run, and retry trials that were lost to infra, budget or grader problems.",
        "resume",
    ),
    ("rescore", "Score the recorded attempts of a run again, without making new attempts.", "resume"),
    ("runs", "List, show, check and delete past runs.", "runs"),
    ("view", "Serve the pages on this machine, and follow runs while they go on.", "pages"),
    ("report", "Write the page of a run: one HTML file with every transcript.", "pages"),
    ("index", "Write a page that lists all runs, with search, history and comparison.", "pages"),
    ("build", "Write every page that is missing or out of date, and the index.", "pages"),
    ("pictures", "Take a picture of each component of a run in Chromium, for its page.", "run"),
    ("export", "Write a run in the format of another tool.", "export"),
    ("compare", "Compare two runs, or two subjects of one run, case by case.", "compare"),
    ("leaderboard", "Rank subjects by their latest results, in groups that cannot be told apart.", "compare"),
    ("history", "Judge a series of runs against a pinned baseline, with one error rate for all looks.", "compare"),
    ("merge", "Merge the results of the shards of one run.", "merge"),
    ("power", "Show how small a difference a design can find, before any money is spent.", "compare"),
    ("selfcheck", "Run one subject twice and report how often the results disagree.", "compare"),
    ("doctor", "Check this machine: what is installed, what is missing, and how to get it.", "doctor"),
    ("models", "List models, show prices, download a model.", "models"),
    ("verify", "Check suites: the reference must pass, an empty and a wrong answer must fail.", "run"),
    (
        "audit",
        "Check what tests are worth, without any model: references must pass, cheats and small faults must fail.",
        "audit",
    ),
    ("suite", "Write suites of your own.", "init:suites"),
    ("judge", "Check model judges against labels of people.", "judge:judges"),
    ("label", "Label answers of a run in the browser, by keyboard, to calibrate the judge that scored them.", "judge"),
    ("import", "Import another tool's log as a run.", "export"),
)
"""The name of each command, its line in the list of commands, and its module."""

TITLES = {
    "Run": "init",
    "Look at results": "runs",
    "Compare and decide": "compare",
    "Set up and maintain": "doctor",
}
"""The titles in the list of commands, each with the first command below it."""

app = group_of(
    example="bakeoff demo",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"max_content_width": 120},
)
add_lazily(app, "bakeoff.cli", COMMANDS, {first: title for title, first in TITLES.items()})


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bakeoff {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


@app.callback(invoke_without_command=True)
def bakeoff(
    context: typer.Context,
    version: Version = False,  # noqa: ARG001 - the callback prints it
) -> None:
    """Find out which model, coding agent, MCP server or prompt is better, by how much and at what cost.

    Without a command, in a terminal, it asks what you want to find out.
    """
    if context.invoked_subcommand is not None:
        return
    from bakeoff.cli.console import can_ask

    if not can_ask():
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    from bakeoff.cli.wizard import choose_aim

    words = choose_aim(Path("results"))
    if words is None:
        raise typer.Exit(130)
    typer.main.get_command(app)(words, prog_name="bakeoff")


_Mistake: type[Any] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""The error that typer raises for an invalid command line. It has no public name."""


def _tell(mistake: Any) -> int:
    """Print a command-line mistake in one line, or the help of a group; return the exit code."""
    if type(mistake).__name__ == "NoArgsIsHelpError":
        mistake.show()
    else:
        context = getattr(mistake, "ctx", None)
        text = " ".join(mistake.format_message().split()).removesuffix(".").replace("Value error, ", "")
        joined = " See" if text.endswith("?") else "; see"
        more = f"{joined} `{context.command_path} --help`" if context else ""
        typer.echo(f"error: {escaped_lines(text[:1].lower() + text[1:])}{more}", err=True)
    return int(mistake.exit_code)


def _refuse_old_forms(words: list[str]) -> None:
    """If an option has the form of an older version, raise an error that names the new form."""
    for word, following in pairwise([*words, ""]):
        given = word.partition("=")[2] or (following if following.endswith((".md", ".markdown", ".txt")) else "")
        if word.partition("=")[0] == "--markdown" and given:
            raise UsageError(f"--markdown {given}: --markdown takes no file any more: write `--markdown -o {given}`")


READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended
INTERNAL = 70  # "internal software error" in sysexits.h; runs never exit with this code


def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback to a file, say where, and end the process. Used as `sys.excepthook`."""
    if isinstance(error, BrokenPipeError):
        os._exit(READER_GONE)
    import tempfile  # not loaded at start-up: few programs crash
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="bakeoff-crash-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(_redacted("".join(traceback.format_exception(kind, error, trace))))
    sys.stderr.write(
        f"bakeoff has a bug: {kind.__name__}: {escaped_lines(str(error))}\n"
        f"Finished trials are safe in the run's folder. The details are in {file.name}; "
        "please attach them to a bug report.\n"
    )
    sys.stderr.flush()
    os._exit(INTERNAL)


def _redacted(text: str) -> str:
    from bakeoff.storage.redacted_stream import printed_secrets

    try:
        return printed_secrets().redact(text)
    except Exception as error:  # noqa: BLE001 - the error may be one of redaction itself
        return f"the details are left out: they could not be redacted ({type(error).__name__})\n"


def accept_every_character() -> None:
    """Write characters as escapes if the encoding of stdout or stderr lacks them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main(group: typer.Typer = app) -> None:
    """Run the command line. Report each error in one sentence and by the exit code."""
    try:
        sys.excepthook = report_crash
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # warnings of libraries are not for users; `python -W` still shows them
        redact_streams()
        accept_every_character()
        _refuse_old_forms(sys.argv[1:])
        # Not `app()`: that would replace our excepthook by typer's.
        sys.exit(typer.main.get_command(group)(standalone_mode=False) or 0)
    except _Mistake as error:
        sys.exit(_tell(error))
    except typer.Abort:
        typer.echo("aborted", err=True)
        sys.exit(1)
    except BakeoffError as error:
        typer.echo(f"error: {escaped_lines(str(error))}", err=True)
        sys.exit(3 if isinstance(error, InfraError) else 2)
    except OSError as error:
        typer.echo(f"error: {escaped_lines(str(error.filename or 'a file'))}: {error.strerror or error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # the reader of our output has gone, as with `| head`
            sys.exit(READER_GONE)
        if "bakeoff._kernel.threads" in sys.modules and isinstance(leaving.code, int):  # not loaded by most commands
            from bakeoff._kernel.threads import end_despite_threads

            end_despite_threads(leaving.code)
        raise


def mctest() -> None:
    """Run `mctest` and `mcp-testing-framework`, which are other names of `bakeoff mcp`."""
    from bakeoff.cli import mcp

    group = group_of(example="mctest evaluate", context_settings={"max_content_width": 120})
    add_lazily(group, mcp.__name__, mcp.COMMANDS)

    @group.callback(help=mcp.HELP)
    def mctest(version: Version = False) -> None:
        pass

    main(group)
