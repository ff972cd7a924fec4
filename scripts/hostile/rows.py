"""What the parts of the campaign report, the promises in SECURITY.md, and the comparison of the two.

SECURITY.md holds two tables. In the first, a row is an attack, and a cell says what becomes of it:

    | attack | what it tries | process as user | process as root | bwrap | docker |
    |---|---|---|---|---|---|
    | `fork-bomb` | start processes without end | limited | limited | limited | limited |

`prevented`: it gets nothing. `limited`: it begins, and a limit ends it. `possible`: it succeeds. `n/a`: it cannot be
tried there. A cell may say more after the word, and `limited as root, possible as user` where these differ. In the
second table, a row is a figure:

    | figure | what is counted | promised |
    |---|---|---|
    | `finished-trials-lost` | … | 0 |
    | `kills` | … | >= 300 |

The order of the columns is free; their names are not.
"""

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["prevented", "limited", "possible", "n/a"]
WORSE: Mapping[Outcome, int] = {"n/a": -1, "prevented": 0, "limited": 1, "possible": 2}
COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "process as user": (("process", "user"),),
    "process as root": (("process", "root"),),
    "bwrap": (("bwrap", "user"), ("bwrap", "root")),
    "docker": (("docker", "user"), ("docker", "root")),
}
_CELL = re.compile(r"(prevented|limited|possible|n/a)\b", re.IGNORECASE)
_BOUND = re.compile(r"(<=|>=|≤|≥|<|>)?\s*(\d[\d,]*(?:\.\d+)?)")
_HOLDS = {"<=": operator.le, "≤": operator.le, ">=": operator.ge, "≥": operator.ge, "<": operator.lt, ">": operator.gt}


class PromiseError(Exception):
    """SECURITY.md cannot be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """Record how one attack ended on one rung, as root or as a user."""

    part: str
    attack: str  # its id in SECURITY.md
    rung: str
    user: str  # "root" or "user"
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """Hold what a part found: rows, figures by name, and failures that need no promise to compare with."""

    rows: Sequence[Row] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    failures: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Promises:
    """Hold what SECURITY.md promises: an outcome for each attack, rung and user, and a bound for each figure."""

    outcomes: Mapping[tuple[str, str, str], Outcome] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)


def read_promises(text: str) -> Promises:
    """Return the promises in the text of SECURITY.md."""
    outcomes: dict[tuple[str, str, str], Outcome] = {}
    figures: dict[str, str] = {}
    for header, cells in _table_rows(text):
        row = dict(zip(header, cells, strict=False))
        name = row[header[0]].strip("`")
        if set(COLUMNS) <= set(header):
            for column, keys in COLUMNS.items():
                outcomes |= {(name, *key): _outcome(row.get(column, ""), name, column, key[1]) for key in keys}
        elif {"figure", "promised"} <= set(header):
            _bound(row.get("promised", ""), name)
            figures[name] = row["promised"]
    return Promises(outcomes, figures)


def _table_rows(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield each row of each Markdown table with its header."""
    header: list[str] = []
    for line in text.splitlines():
        if not line.strip().startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = [cell.strip("`").replace("`", "").lower() for cell in cells]
        elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            yield header, cells


def _outcome(cell: str, name: str, column: str, user: str) -> Outcome:
    found = re.search(rf"{_CELL.pattern} as {user}\b", cell, re.IGNORECASE) or _CELL.match(cell.strip("*` "))
    if not found:
        raise PromiseError(f"SECURITY.md: {cell!r} ({name}, {column}) begins with none of {', '.join(WORSE)}")
    return found[1].lower()  # type: ignore[return-value]


def _bound(cell: str, name: str) -> tuple[str, float]:
    found = _BOUND.match(cell.strip("*` "))
    if not found:
        raise PromiseError(f"SECURITY.md: {cell!r} ({name}, promised) is no number, and no bound such as <= 600")
    return found[1] or "", float(found[2].replace(",", ""))


def differences(promises: Promises, found: Findings, *, whole: bool) -> list[str]:
    """Return a sentence for each difference between what is promised and what was found.

    What is better than promised is a difference too: the document is untrue. If the campaign is `whole`, so are
    promises that nothing tried. An outcome of n/a is not compared: that rung is not on this machine.
    """
    said = [f"{name} is not in SECURITY.md" for name in _unknown(promises, found)]
    worst: dict[tuple[str, str, str], Row] = {}
    for row in found.rows:
        key = (row.attack, row.rung, row.user)
        if key not in worst or WORSE[row.outcome] > WORSE[worst[key].outcome]:
            worst[key] = row
    for key, row in worst.items():
        promised = promises.outcomes.get(key)
        if promised and row.outcome not in ("n/a", promised):
            worse = "worse" if WORSE[row.outcome] > WORSE[promised] else "better"
            where = f"{row.attack} on {row.rung} as {row.user}"
            said.append(f"{where} is {row.outcome}, {worse} than promised ({promised}): {row.detail}")
    said += [sentence for name, value in found.figures.items() if (sentence := _missed(promises, name, value))]
    if whole:
        attacks = {row.attack for row in found.rows}
        said += [
            f"{name} is promised, and nothing tries it"
            for name in {key[0]: 0 for key in promises.outcomes}
            if name not in attacks
        ]
        said += [
            f"{name} is promised, and nothing measures it" for name in promises.figures if name not in found.figures
        ]
    return said


def _unknown(promises: Promises, found: Findings) -> list[str]:
    promised = {key[0] for key in promises.outcomes}
    return [name for name in dict.fromkeys(row.attack for row in found.rows) if name not in promised]


def _missed(promises: Promises, name: str, value: float) -> str:
    """Return what is wrong with a figure, or nothing. Figures without a promise are for information."""
    if name not in promises.figures:
        return ""
    sign, bound = _bound(promises.figures[name], name)
    kept = _HOLDS[sign](value, bound) if sign else value == bound
    return "" if kept else f"{name} is {value:g}, promised is {promises.figures[name]}"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table attack × rung × (root, user). Attacks of one part stand together."""
    columns = [(rung, user) for rung in ("process", "bwrap", "docker") for user in ("user", "root")]
    width = max([len(row.attack) for row in rows], default=6)
    yield " ".join([f"{'attack':{width}}", *(f"{f'{rung}, {user}':13}" for rung, user in columns)])
    for part in dict.fromkeys(row.part for row in rows):
        own = [row for row in rows if row.part == part]
        for attack in dict.fromkeys(row.attack for row in own):
            cells = [
                _cell([row for row in own if (row.attack, row.rung, row.user) == (attack, *key)]) for key in columns
            ]
            yield " ".join([f"{attack:{width}}", *(f"{cell:13}" for cell in cells)]).rstrip()


def _cell(rows: Sequence[Row]) -> str:
    return max((row.outcome for row in rows), key=WORSE.__getitem__, default="-")


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the cells of the table of SECURITY.md as they would have to be, the worst of each column."""
    for attack in dict.fromkeys(row.attack for row in rows):
        own = [row for row in rows if row.attack == attack]
        cells = [_cell([row for row in own if (row.rung, row.user) in keys]) for keys in COLUMNS.values()]
        yield f"| `{attack}` | … | {' | '.join(cells)} |"
