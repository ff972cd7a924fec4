"""Draw the first table of docs/explanation/growth.md: `python -m scripts.plot_growth`."""

import re
from pathlib import Path

from bench.plot import log_plot

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "growth.md"
ROW = re.compile(
    r"^\| ([\d,]+) \(.*?\) \| ([\d,]+) \| \d+ \| \d+ \| ([\d,]+), \d+ \| ([\d,]+), \d+ \| ([\d,]+), \d+ \|", re.M
)
LINES = ("bakeoff: run", "bakeoff: runs show", "bakeoff: CSV", "bakeoff: page")


def plot() -> str:
    """Return the picture of the figures that the page has now."""
    rows = [[float(cell.replace(",", "")) for cell in row] for row in ROW.findall(PAGE.read_text("utf-8"))]
    lines = {name: [(row[0], row[number]) for row in rows] for number, name in enumerate(LINES, 1)}
    return log_plot(lines, x="trials", y="CPU time of a trial, µs", title="CPU time of a trial by the size of the run")


if __name__ == "__main__":
    PAGE.with_suffix(".svg").write_text(plot(), "utf-8")
