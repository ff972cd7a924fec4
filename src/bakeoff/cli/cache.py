"""Implement `bakeoff cache`: show and clear what can be downloaded or built again."""

import sys
from typing import Annotated

import typer
from typer import Argument

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import delete_folder, folder_size, in_megabytes
from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import add_row, out, print_json, say, table
from bakeoff.cli.declare import command, group_of
from bakeoff.cli.flags import AsJson, Yes
from bakeoff.errors import UsageError

app = group_of("Show and clear what can be downloaded or built again.", "bakeoff cache size")

PARTS = {
    "models": "weights of models that run on this machine",
    "toolchains": "packages that graders run with",
    "references": "how references of suites and exercises were graded",
    "gateway": "the list of models and their prices",
    "mcp": "folders of confined MCP servers",
    "runs": "summaries of runs, for pages",
}
"""The folders of the cache."""


@command(app, "size")
def cache_size(*, as_json: AsJson = False) -> None:
    """Show how much space each part of the cache takes.

    Example: bakeoff cache size --json
    """
    folder = cache_folder()
    sizes = {part: folder_size(folder / part) for part in PARTS}
    if as_json:
        parts = [{"part": part, "bytes": size, "files": files} for part, (size, files) in sizes.items()]
        print_json({"folder": str(folder), "bytes": sum(size for size, _ in sizes.values()), "parts": parts})
        return
    shown = table("part", "size", "files", "what", right=("size", "files"))
    for part, (size, files) in sizes.items():
        add_row(shown, part, in_megabytes(size), f"{files:,}", PARTS[part])
    out().print(shown)
    out().print(f"{in_megabytes(sum(size for size, _ in sizes.values()))} in {visible(str(folder), 1000)}")


@command(app, "clear")
def cache_clear(
    *,
    parts: Annotated[
        list[str] | None, Argument(metavar="PART", help="As `bakeoff cache size` names it. Default: all.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete parts of the cache: models, toolchains and prices are fetched again when they are needed.

    No run and no recording is deleted. Do not clear the cache while something runs.

    Example: bakeoff cache clear toolchains --yes
    """
    if unknown := [part for part in parts or () if part not in PARTS]:
        raise UsageError(f"the cache has no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    folder = cache_folder()
    wanted = [folder / part for part in parts or PARTS if (folder / part).exists() or (folder / part).is_symlink()]
    if not wanted:
        say(f"nothing to clear in {folder}")
        return
    size = in_megabytes(sum(folder_size(path)[0] for path in wanted))
    names = ", ".join(path.name for path in wanted)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"deleting {names} in {folder} needs confirmation: add --yes where there is no terminal")
        typer.confirm(f"Delete {names} in {visible(str(folder), 1000)} ({size})?", abort=True)
    for path in wanted:
        delete_folder(path)
    say(f"cleared {size} in {count_of(len(wanted), 'part')}: {names}")
