"""Write pages: one self-contained file each. They load nothing, and none of the data they show can execute.

render        blocks as HTML, compressed data, the security policy     drawing     the places of marks on plots
run_data      one pass over a journal                                  detail      one record as JSON for a page
run_page      the page of a run
index_page    the index and the leaderboard of a results folder
"""
