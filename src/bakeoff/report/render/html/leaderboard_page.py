"""Write the leaderboard over all runs of a results folder."""

from pathlib import Path

from bakeoff.report.leaderboard.description import describe_leaderboard
from bakeoff.report.leaderboard.ranking import rank_results
from bakeoff.report.readers import RunFolderReader, Source
from bakeoff.report.render.html.render import ServedPages, write_report_page
from bakeoff.storage.run_folder import run_folders


def write_leaderboard(results: Path, path: Path, *, served: ServedPages | None = None) -> Path:
    """Rank the subjects of every readable run, and write the page."""
    board = rank_results(Source(folder.path, RunFolderReader()) for folder in run_folders(results))
    return write_report_page(path, describe_leaderboard(board), served=served)
