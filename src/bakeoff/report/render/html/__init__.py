"""Write pages: one self-contained file each. They load nothing, and none of the data they show can execute.

render        blocks as HTML, compressed data, the security policy     drawing     the places of marks on plots
run_data      one pass over a journal                                  detail      one record as JSON for a page
run_sections  a run's numbers as sections                              run_page    the page of a run
index_page    the index and the leaderboard of a results folder
"""

from bakeoff.report.render.html.index_page import (
    IndexEntry,
    read_entries,
    read_file_entries,
    write_index,
    write_leaderboard,
)
from bakeoff.report.render.html.render import write_cycle, write_report_page
from bakeoff.report.render.html.run_page import write_run_page, write_source_page

__all__ = [
    "IndexEntry",
    "read_entries",
    "read_file_entries",
    "write_cycle",
    "write_index",
    "write_leaderboard",
    "write_report_page",
    "write_run_page",
    "write_source_page",
]
