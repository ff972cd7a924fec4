"""`bakeoff agents leaderboard`: result files of agents, ranked."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bakeoff.cli.comparing import Shape
from bakeoff.cli.console import err, out
from bakeoff.doors.exercises.results.board import Standing, leaderboard_json, standings_of
from bakeoff.doors.exercises.results.board_text import describe_board
from bakeoff.doors.exercises.results.model import ResultFile
from bakeoff.doors.exercises.results.read import ExerciseResultReader, read_result
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.report.compare_logs import harmless_in_logs, harmless_json
from bakeoff.report.markdown import to_markdown
from bakeoff.report.terminal import print_blocks
from bakeoff.report.words import visible

LATEST = "latest.json"


def show_board(results: Path, files: Sequence[Path], shape: Shape) -> None:
    """As JSON, Markdown or a table on stdout, and as a page where one is wanted."""
    if shape.as_json and shape.markdown:
        raise UsageError("--json and --markdown both go to stdout: choose one")
    read = list(_named(files) if files else _found(results))
    if not read:
        places = ", ".join(visible(str(path)) for path in files or [results])
        raise UsageError(f"no result file of agents in {places}: name some, or `bakeoff agents run` first")
    standings = standings_of(read)
    if shape.html:
        folders = {path if path.is_dir() else path.parent: None for path in files or [results]}
        err().print(f"written to {visible(str(_page(shape.html, standings, list(folders))), 1000)}")
    if shape.as_json:
        out().file.write(harmless_json(json.dumps(leaderboard_json(read), indent=2)) + "\n")
    elif shape.markdown:
        out().file.write(harmless_in_logs(to_markdown(describe_board(standings))))
    elif not shape.html:
        _print(standings)


def _named(files: Sequence[Path]) -> Iterator[ResultFile]:
    """Files, and all the files of folders; what was asked for by its name must be readable."""
    for path in files:
        if path.is_dir():
            yield from _found(path)
        elif not path.is_file():
            raise UsageError(f"{visible(str(path))} is not there: name result files of agents, or folders of them")
        else:
            yield read_result(path)


def _found(folder: Path) -> Iterator[ResultFile]:
    """One damaged file must not hide the others; `latest.json` is a copy of one of them."""
    reader = ExerciseResultReader()
    for path in sorted(folder.glob("*.json")):
        if path.name != LATEST and reader.recognises(path):
            try:
                yield read_result(path)
            except BakeoffError as error:
                err().print(f"warning: left out: {visible(str(error), 2000)}")


def _page(path: Path, standings: Sequence[Standing], folders: Sequence[Path]) -> Path:
    from bakeoff.doors.exercises.results.board_page import write_board_page

    return write_board_page(path, standings, folders)


def _print(standings: Sequence[Standing]) -> None:
    console = out()
    with console.capture() as printed:
        print_blocks(console, describe_board(standings))
    console.file.write(harmless_in_logs(printed.get()))
