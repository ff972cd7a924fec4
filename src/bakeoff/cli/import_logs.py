"""Carry out `bakeoff import`: make runs of the logs of other tools."""

from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import out, print_json, say
from bakeoff.errors import UsageError
from bakeoff.logs.reader import Choices, ImportedRun, import_log, plan_source
from bakeoff.storage.object_store import is_store_address

if TYPE_CHECKING:
    from bakeoff._kernel.choices import LogFormat


def run_import(
    *,
    logs: list[Path],
    results: Path,
    format_: "LogFormat | None",
    scorer: list[str] | None,
    threshold: float | None,
    as_json: bool,
) -> None:
    """Import each log as a run of its own, and print the folders."""
    if is_store_address(str(results)):
        raise UsageError(f"--results {results}: logs are imported into a folder on this machine: name one")
    choices = Choices(format=format_, scorers=tuple(scorer or ()), threshold=threshold)
    made = []
    for path in logs:
        made.append(imported := import_log(path, results, choices))
        if not as_json:
            say(f"imported {visible(str(path), 300)}: {_describe(imported)}")
            out().file.write(f"{imported.folder.path}\n")
    if as_json:
        print_json({"runs": [str(imported.folder.path) for imported in made]})
    else:
        name = made[-1].folder.label
        say(f"next: `bakeoff runs show {name}`, `bakeoff report {name}`, `bakeoff leaderboard`")


def _describe(imported: ImportedRun) -> str:
    plan = imported.plan
    design = " × ".join(
        count_of(count, what)
        for count, what in ((len(plan.cases), "case"), (len(plan.subjects), "subject"), (plan.rounds, "round"))
    )
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(imported.verdicts.items()))
    return f"{design} from {plan_source(plan).words}: {verdicts}"
