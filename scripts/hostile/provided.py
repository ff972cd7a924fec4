"""Parts that live beside the code they are about, called here in one way.

`servers` is `scripts.hostile.servers`, `canaries` is `tests.canaries`: `run(long=...)` returns figures and failures.
`flips` is `tests.storage.damage`: `campaign(folder, count, seed)`.
"""

import importlib
import importlib.util
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.hostile.options import Options
from scripts.hostile.rows import Findings

from bakeoff.storage.journal import read_journal
from bakeoff.storage.journal_lines import Damage

FLIPS, SAMPLED_FLIPS = 3_000, 200
_JOURNAL = Path(__file__).resolve().parents[2] / "tests" / "storage" / "data" / "journal-v1.jsonl"


def servers(options: Options) -> Findings:
    """Attack our servers."""
    return _provided("servers", ("scripts.hostile.servers",), options)


def canaries(options: Options) -> Findings:
    """Put keys into every place they can come from, and look for them in every place a text can go."""
    return _provided("canaries", ("tests.canaries", "scripts.hostile.canaries"), options)


def flips(options: Options) -> Findings:
    """Damage runs, and count the damages that change a result without a word."""
    count = SAMPLED_FLIPS if options.sample else max(1, round(FLIPS * options.scale))
    with tempfile.TemporaryDirectory(prefix="bakeoff-flips-") as folder:
        if _is_there("tests.storage.damage"):
            silent = importlib.import_module("tests.storage.damage").campaign(Path(folder), count, options.seed).silent
        else:
            silent = _flip_bits(Path(folder), count, options.seed)
    figures = {"damages": float(count), "unnoticed-damages": float(len(silent))}
    return Findings(figures=figures, failures=[f"unnoticed: {each}" for each in silent[:20]])


def _provided(part: str, modules: tuple[str, ...], options: Options) -> Findings:
    for name in modules:
        if _is_there(name):
            figures, failures = importlib.import_module(name).run(long=not options.sample)
            return Findings(figures=figures, failures=failures)
    return Findings(failures=[f"there is no part {part}: neither of {', '.join(modules)}"])


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _flip_bits(folder: Path, count: int, seed: int) -> list[str]:
    """Flip single bits of a journal, and return those that change what it says unnoticed."""
    chance, silent = random.Random(seed), []
    copy = folder / "journal.jsonl"
    shutil.copy(_JOURNAL, copy)
    before, whole = list(read_journal(copy)), copy.read_bytes()
    for _ in range(count):
        place, bit = chance.randrange(len(whole)), chance.randrange(8)
        data = bytearray(whole)
        data[place] ^= 1 << bit
        copy.write_bytes(data)
        after = list(read_journal(copy))
        if after != before and _damaged(after) == _damaged(before):
            silent.append(f"bit {bit} of byte {place}")
    return silent


def _damaged(entries: Sequence[object]) -> int:
    return sum(isinstance(entry, Damage) for entry in entries)
