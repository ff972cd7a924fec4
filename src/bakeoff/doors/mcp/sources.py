"""Find the files whose change may change what a server offers: the source beside a suite and what its commands name."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from bakeoff._kernel.watch import source_files
from bakeoff.mcp import ServerSpec

MAX_FILES = 5_000
"""Of one suite. A folder with more is not one of sources alone."""

DATA_SUFFIXES = (".json", ".md", ".txt", ".sql")
"""Of files that servers may read their descriptions from, or write to."""

_SUFFIXES = (
    *DATA_SUFFIXES,
    *(".py", ".toml", ".yaml", ".yml"),
    *(".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"),
    *(".go", ".rs", ".java", ".kt", ".rb", ".php", ".cs", ".swift", ".ex", ".lua", ".sh"),
)


def suite_sources(folder: Path, servers: Sequence[ServerSpec], outputs: Sequence[Path]) -> set[str]:
    """Return the source files below the folder of a suite, and the files that the commands of its servers name.

    `outputs` are folders that evaluations write to.
    """
    top = folder.resolve()
    written = {str(output.resolve()) for output in outputs}
    files = set(islice(source_files(top, _SUFFIXES, written), MAX_FILES))
    for server in servers:
        files.update(_named_files(server, top))
    return files


def _named_files(server: ServerSpec, folder: Path) -> Iterator[str]:
    place = folder / (server.cwd or "")
    for word in (server.command, *server.args):
        if not word:
            continue
        with suppress(OSError, ValueError):  # a word that no disk can have as a path
            path = place / word
            if path.is_file():
                yield str(path.resolve())
