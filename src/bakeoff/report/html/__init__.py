"""Pages: one self-contained file each. They fetch nothing, and nothing in the data they show can run.

gather    one pass over a journal                 detail      one record as the page reads it
chunks    compressed data inside a page           run_sections   a run's numbers as sections
plots     where the marks of a plot stand         render      sections as HTML, the policy, the frame
run_page  index_page                              entries     what the index knows of a run, kept beside it
"""

from bakeoff.report.html.entries import Entry, read_entries
from bakeoff.report.html.index_page import write_index
from bakeoff.report.html.run_page import write_run_page

__all__ = ["Entry", "read_entries", "write_index", "write_run_page"]
