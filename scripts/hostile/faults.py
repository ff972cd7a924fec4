"""Kill our processes, and take away what they need: disk, descriptors, a steady clock, servers."""

from scripts.hostile.kills import run_kills
from scripts.hostile.options import Options
from scripts.hostile.rows import Findings
from scripts.hostile.shortages import run_shortages

KILLS, SAMPLED_KILLS = 160, 4  # in each half: as root and as a user


def run(options: Options) -> Findings:
    """Make the kills and the shortages."""
    kills = SAMPLED_KILLS if options.sample else max(1, round(KILLS * options.scale))
    killed, short = run_kills(options, kills), run_shortages(options)
    return Findings(figures={**killed.figures, **short.figures}, failures=[*killed.failures, *short.failures])
