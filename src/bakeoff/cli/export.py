"""Implement `bakeoff export` and `bakeoff import`: runs in the formats of other tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.choices import ExportFormat
from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import out, print_json, say
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import AsJson, LogFlags, Results, RunName
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.logs.reader import ImportedRun

app = group_of()


@command(app, "export")
def run_export(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    format_: ExportFormat = flag("csv", "The format to write.", "--format"),
    output: str = flag("-", "The file to write; `-` is stdout.", "--output", "-o", metavar="FILE"),
    subject: str | None = flag(None, "Export only this subject.", metavar="NAME"),
) -> None:
    """Write a run in the format of another tool.

    Example: bakeoff export latest --format junit -o junit.xml
    """

    from bakeoff.report.exports.formats import export_run
    from bakeoff.report.readers import find_source
    from bakeoff.storage.journal_lines import note_damage

    source = find_source(results, run)
    for file in export_run(source, format_, output, subject):
        say(f"wrote {file}")
    note_damage(source.name, source.circumstances().damaged)


@command(app, "import")
def run_import(
    *,
    logs: Annotated[list[Path], Argument(metavar="LOG", help="Files or folders that another tool wrote.")],
    results: Results = Path("results"),
    wanted: LogFlags,
    as_json: AsJson = False,
) -> None:
    """Import another tool's log as a run.

    Inspect, Harbor, promptfoo, DeepEval, pydantic-evals, vitest-evals, lm-evaluation-harness and SWE-bench are known.
    Every command for runs then works on it. `compare`, `leaderboard`, `report` and `export` also take a log as it is.

    Example: bakeoff import logs/task.eval
    """

    from bakeoff.logs.reader import ForeignLogReader, import_log
    from bakeoff.storage.store_copy import is_store_address

    if is_store_address(str(results)):
        raise UsageError(f"--results {results}: logs are imported into a folder on this machine: name one")
    reader, made = ForeignLogReader(wanted.choices()), []
    for path, each in (found for log in logs for found in reader.apart(log)):
        made.append(imported := import_log(path, results, each.choices))
        if not as_json:
            say(f"imported {visible(str(path), 300)}: {_describe_import(imported)}")
            out().file.write(f"{imported.folder.path}\n")
    if as_json:
        print_json({"runs": [str(imported.folder.path) for imported in made]})
    else:
        name = made[-1].folder.label
        say(f"next: `bakeoff runs show {name}`, `bakeoff report {name}`, `bakeoff leaderboard`")


def _describe_import(imported: "ImportedRun") -> str:
    from bakeoff.logs.reader import plan_source

    plan = imported.plan
    size = ((len(plan.cases), "case"), (len(plan.subjects), "subject"), (plan.rounds, "round"))
    design = " × ".join(count_of(count, what) for count, what in size)
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(imported.verdicts.items()))
    return f"{design} from {plan_source(plan).words}: {verdicts}"
