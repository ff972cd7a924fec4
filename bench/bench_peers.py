"""Bakeoff and every peer on the same work, each in its own environment and process, in turns on this machine.

Whole processes are measured, from their start to their end. Bakeoff keeps a journal that is fsynced; what a peer keeps
is the column "log". `python -m bench.bench_peers --docs` writes the figures and the plot of the docs anew.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bakeoff._kernel.text import count_of
from bench.peers.contenders import OUR_EVALS, OURS, Contender, Work, contenders
from bench.peers.measured import ContenderFailed, Measured, measure
from bench.plot import log_plot

INSTANT = tuple(Work(cases) for cases in (1, 100, 1_000, 10_000, 100_000))
SLEEPING = Work(2_000, pause=0.05, at_once=100)
REPEATS = 3
LONG = 12.0  # seconds; a run that takes longer is not repeated
MAX_LENGTH = 75.0  # seconds; a contender that would need longer sits the row out
DOCS = Path(__file__).parents[1] / "docs" / "explanation"


@dataclass(frozen=True, slots=True)
class Row:
    """The measurements of one contender on one work."""

    contender: str
    work: Work
    runs: tuple[Measured, ...]

    def median(self, what: str) -> float:
        return statistics.median(float(getattr(run, what)) for run in self.runs)

    @property
    def spread(self) -> str:
        seconds = sorted(run.seconds for run in self.runs)
        return f"{seconds[0]:.2f} … {seconds[-1]:.2f}" if len(seconds) > 1 else "once"


def main() -> int:
    every = contenders()
    for contender in every:
        told = contender.environment.missing or contender.environment.version
        print(f"{contender.name:18}{told}", flush=True)
    here = [contender for contender in every if not contender.environment.missing]
    rows: list[Row] = []
    for work in (*INSTANT, SLEEPING):
        found = list(race(here, work, rows))
        rows += found
        show(work, found, here)
    wanted = list(ratios(rows))
    for line in wanted:
        print(line)
    facts = as_json(every, rows)
    keep("peers", facts)
    if "--docs" in sys.argv:
        write_docs(facts, rows)
    return 0


def race(here: list[Contender], work: Work, before: list[Row]) -> Iterator[Row]:
    """Let the contenders take turns, so that a busy moment of the machine meets them all."""
    runs: dict[str, list[Measured]] = {contender.name: [] for contender in here if is_able(contender, work, before)}
    for _ in range(REPEATS):
        for contender in here:
            mine = runs.get(contender.name)
            if mine is None or (mine and mine[0].seconds > LONG):
                continue
            try:
                mine.append(measure(contender, work, 2 * MAX_LENGTH))
            except ContenderFailed as problem:
                print(f"✗ {problem}", flush=True)
                del runs[contender.name]
    return (Row(name, work, tuple(mine)) for name, mine in runs.items())


def is_able(contender: Contender, work: Work, before: list[Row]) -> bool:
    """Tell whether a contender is likely to end in time, from its last row."""
    if work.pause and not contender.concurrent:
        return False
    mine = [row for row in before if row.contender == contender.name and not row.work.pause]
    if not mine:
        return not before
    alone = mine[0].median("seconds")
    each = (mine[-1].median("seconds") - alone) / mine[-1].work.cases
    return alone + each * work.cases < MAX_LENGTH


def show(work: Work, rows: list[Row], here: list[Contender]) -> None:
    pause = f" of {1000 * work.pause:g} ms, {work.at_once} in flight" if work.pause else ""
    what = f"{count_of(work.cases, 'case')}{pause}"
    print(f"\n{what:38}{'seconds':>9}{'spread':>16}{'× bakeoff':>11}{'cpu s':>8}{'peak MB':>9}{'log B/case':>12}")
    ours = next((row.median("seconds") for row in rows if row.contender == OURS), None)
    by_name = {row.contender: row for row in rows}
    for contender in here:
        row = by_name.get(contender.name)
        if row is None:
            print(f"{contender.name:38}{'too long' if contender.concurrent else 'not concurrent':>14}")
            continue
        ratio = f"{row.median('seconds') / ours:.2f}×" if ours else ""
        log = f"{row.median('log_bytes') / work.cases:,.0f}" if contender.logs else "none"
        figures = f"{row.median('cpu'):>8.2f}{row.median('peak_mb'):>9.0f}{log:>12}"
        print(f"{contender.name:38}{row.median('seconds'):>9.2f}{row.spread:>16}{ratio:>11}{figures}")


def ratios(rows: list[Row]) -> Iterator[str]:
    """Say by how much the fastest peer of each row is faster or slower than Bakeoff's two ways."""
    yield ""
    for work in (*INSTANT, SLEEPING):
        seconds = {row.contender: row.median("seconds") for row in rows if row.work == work}
        peers = {name: taken for name, taken in seconds.items() if name not in {OURS, OUR_EVALS}}
        for ours in (OURS, OUR_EVALS):
            if ours in seconds and peers:
                best = min(peers, key=lambda name: peers[name])
                ratio = peers[best] / seconds[ours]
                told = "ahead" if ratio >= 1 else "BEHIND"
                many = count_of(work.cases, "case")
                yield f"{ours:18}{many:>14}: {ratio:.2f}× the speed of the fastest peer, {best} ({told})"


def as_json(every: list[Contender], rows: list[Row]) -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": {"cores": os.cpu_count(), "memory_gb": round(memory), "python": platform.python_version()},
        "versions": {each.name: each.environment.missing or each.environment.version for each in every},
        "rows": [asdict(row) for row in rows],
    }


def keep(name: str, facts: dict[str, Any]) -> None:
    file = Path("results", "bench", f"{name}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"figures: {file}")


def write_docs(facts: dict[str, Any], rows: list[Row]) -> None:
    lines = {
        name: [(row.work.cases, row.median("seconds")) for row in rows if row.contender == name and not row.work.pause]
        for name in facts["versions"]
    }
    picture = log_plot(
        {name: points for name, points in lines.items() if points},
        x="cases that take no time themselves",
        y="seconds, whole process",
        title="Seconds that each tool takes by the number of cases",
    )
    (DOCS / "benchmarks-peers.svg").write_text(picture, encoding="utf-8")
    (DOCS / "benchmarks-peers.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print("\n".join(markdown(facts, rows)))


def markdown(facts: dict[str, Any], rows: list[Row]) -> Iterator[str]:
    """Yield the table of the docs: seconds of each contender on each work."""
    works = (*INSTANT, SLEEPING)
    heads = [f"{work.cases:,}" + (f" of {1000 * work.pause:g} ms" if work.pause else "") for work in works]
    yield f"| | {' | '.join(heads)} | MB at 10,000 | log, bytes a case |"
    yield "|---" * (len(works) + 3) + "|"
    by_name = {(row.contender, row.work): row for row in rows}
    for name, version in facts["versions"].items():
        found = [by_name.get((name, work)) for work in works]
        seconds = [f"{row.median('seconds'):.2f}" if row else "–" for row in found]
        largest = next((row for row in (found[3], found[2]) if row), None)
        memory = f"{largest.median('peak_mb'):.0f}" if largest else "–"
        log = f"{largest.median('log_bytes') / largest.work.cases:,.0f}" if largest else "–"
        yield f"| {name} {version} | {' | '.join(seconds)} | {memory} | {log} |"


if __name__ == "__main__":
    sys.exit(main())
