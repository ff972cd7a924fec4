"""Plant canary keys where keys come from, have them repeated in the promised encodings, and search every output.

`search` returns one `Finding` for each key that is readable in an output; promised is that there is none.

sources     the places that keys come from            encodings   the promised encodings
peers       those that repeat keys                    world       the project, and what comes out of it
doors       run everything                            finding     search bytes, without any code of Bakeoff
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.canaries.doors import DOORS, sources_of
from tests.canaries.encodings import ENCODINGS, core
from tests.canaries.finding import Finder, Finding
from tests.canaries.sources import CONTROL, Source
from tests.canaries.world import Output, World
from tests.warm_bakeoff import WarmBakeoff, WarmServer


@dataclass(frozen=True, slots=True)
class Searched:
    """Hold what was searched, and what was found."""

    sources: tuple[Source, ...]
    outputs: tuple[Output, ...]
    findings: tuple[Finding, ...]
    reached: frozenset[str]  # places where the control is readable: there, a key would have been found

    @property
    def searches(self) -> int:
        """Return how many keys were looked for in how many outputs."""
        return len(self.sources) * len(ENCODINGS) * len(self.outputs)


@contextmanager
def warmed() -> Iterator[WarmBakeoff]:
    """Start a process that runs commands without their imports."""
    server = WarmServer(os.environ)
    warm = WarmBakeoff(server.address, os.environ)
    try:
        yield warm
    finally:
        warm.close()
        server.close()


def search(folder: Path, door: str, warm: WarmBakeoff, *, long: bool = True) -> Searched:
    """Plant keys under `folder`, run a door there, and search everything that it printed, wrote and sent."""
    sources = tuple(sources_of(door, long=long))
    world = World(folder, sources, warm, long)
    world.build()
    DOORS[door](world)
    found = find(sources, world.outputs)
    leaks = tuple(one for one in found if one.source != CONTROL.name)
    reached = frozenset(one.place for one in found if one.source == CONTROL.name)
    return Searched(sources, tuple(world.outputs), leaks, reached)


def find(sources: Iterable[Source], outputs: Iterable[Output]) -> list[Finding]:
    """Return the keys that are readable in the outputs."""
    finder = Finder(
        {
            core(encode(source.key), encoding).encode(): (source.name, encoding)
            for source in sources
            for encoding, encode in reversed(ENCODINGS.items())
        }
    )
    found = {
        Finding(source, output.door, output.place, encoding)
        for output in outputs
        for source, encoding in finder.found_in(output.data)
    }
    return sorted(found)


def table(findings: Sequence[Finding]) -> str:
    """Return the findings as lines: door, place, source, and how many encodings."""
    counted = Counter((one.door, one.place, one.source) for one in findings)
    first = {(one.door, one.place, one.source): one.encoding for one in findings}
    lines = [f"{' · '.join(place)}\t{number} encodings, such as {first[place]}" for place, number in counted.items()]
    return "\n".join(lines) or "0 canaries"


def run(*, long: bool) -> tuple[dict[str, float], list[str]]:
    """Search all doors; return figures and failures for the hostile campaign. The bounded form plants fewer keys."""
    searches, reached, failures = 0, 0, []
    with warmed() as warm:
        for door in DOORS:
            with tempfile.TemporaryDirectory(prefix="bakeoff-canaries-") as folder:
                searched = search(Path(folder), door, warm, long=long)
            searches, reached = searches + searched.searches, reached + len(searched.reached)
            failures += [f"readable: {line}" for line in table(searched.findings).splitlines() if searched.findings]
            if not searched.reached:
                failures.append(f"{door}: the control is readable nowhere, so that nothing was searched")
    return {
        "canary-searches": float(searches),
        "canary-places": float(reached),
        "canaries": float(len(failures)),
    }, failures
