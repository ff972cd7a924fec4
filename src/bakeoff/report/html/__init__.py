"""Pages: one self-contained file each. They fetch nothing, and nothing in the data they show can run.

gather        one pass over a journal               detail        one record as the page reads it
chunks        compressed data inside a page         run_sections  a run's numbers as sections
plots forest  where the marks of a drawing stand    scores        cells and points that several pages share
render        sections as HTML, the policy          entries       what the index knows of a run
run_page  index_page  section_page (comparisons, leaderboards and whatever else can be said as sections)
"""

from bakeoff.report.html.entries import Entry, read_entries, read_file_entries
from bakeoff.report.html.index_page import write_index
from bakeoff.report.html.run_page import write_run_page, write_source_page
from bakeoff.report.html.section_page import Masthead, write_section_page

__all__ = [
    "Entry",
    "Masthead",
    "read_entries",
    "read_file_entries",
    "write_index",
    "write_run_page",
    "write_section_page",
    "write_source_page",
]
