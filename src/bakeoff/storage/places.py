"""Find the folders that hold runs: `results` here or in a folder above, and where older versions kept runs."""

from collections.abc import Iterator
from pathlib import Path

from bakeoff._kernel.choices import RESULTS

OLDER = ".bakeoff"
"""The folder beside it in which older versions of the pytest plugin kept runs; recordings still are there."""

_PROJECT_ENDS = (".git", "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")


def folders_of_runs(results: Path) -> Iterator[Path]:
    """Yield the folders that hold the runs of a folder of results. The first is the one for new runs."""
    yield results / "runs"
    if results.name == RESULTS:
        yield results.parent / OLDER / "runs"


def nearest_results(results: Path = Path(RESULTS)) -> Path:
    """Return the folder if it holds runs, or else the nearest one above that does, within the project."""
    here = Path.cwd()
    above = [here, *here.parents]
    ends = [place for place, folder in enumerate(above) if any((folder / name).exists() for name in _PROJECT_ENDS)]
    for folder in above[: ends[0] + 1 if ends else 1]:
        found = results if folder == here else folder / results
        if any(place.is_dir() for place in folders_of_runs(found)):
            return found
    return results
