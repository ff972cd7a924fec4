"""Parts that live beside the code they are about, called here in one way."""

import tempfile
from pathlib import Path

from scripts.hostile import servers as attacked_servers
from scripts.hostile.options import Options
from scripts.hostile.rows import Findings
from tests import canaries as planted_canaries
from tests.storage.damage import campaign

FLIPS, SAMPLED_FLIPS = 3_000, 200
FLIP = "flip a bit"


def servers(options: Options) -> Findings:
    """Attack our servers."""
    figures, failures = attacked_servers.run(long=not options.sample)
    return Findings(figures=figures, failures=failures)


def canaries(options: Options) -> Findings:
    """Put keys into every place they can come from, and look for them in every place a text can go."""
    figures, failures = planted_canaries.run(long=not options.sample)
    return Findings(figures=figures, failures=failures)


def flips(options: Options) -> Findings:
    """Flip bits of runs and damage others in every way, and count what changes a result without a word."""
    count = SAMPLED_FLIPS if options.sample else max(1, round(FLIPS * options.scale))
    with tempfile.TemporaryDirectory(prefix="bakeoff-flips-") as folder:
        silent = campaign(Path(folder, "flipped"), count, options.seed, kinds=(FLIP,)).silent
        silent += campaign(Path(folder, "damaged"), count, options.seed + 1).silent
    figures = {"damages": 2.0 * count, "unnoticed-damages": float(len(silent))}
    return Findings(figures=figures, failures=[f"unnoticed: {each}" for each in silent[:20]])
