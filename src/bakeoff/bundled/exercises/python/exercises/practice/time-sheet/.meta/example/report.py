from collections.abc import Callable, Iterable
from functools import partial
from itertools import combinations

from entries import DAY, Entry


def minutes(entry: Entry) -> int:
    return entry.end - entry.start


def clock(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else ''}{hours}:{rest:02}"


def by_project(entries: list[Entry]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in entries:
        totals[entry.project] = totals.get(entry.project, 0) + minutes(entry)
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


def by_week(entries: list[Entry]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in sorted(entries, key=lambda entry: entry.day):
        year, week, _ = entry.day.isocalendar()
        key = f"{year}-W{week:02}"
        totals[key] = totals.get(key, 0) + minutes(entry)
    return totals


def overlaps(entries: list[Entry]) -> list[tuple[Entry, Entry]]:
    return [(one, other) for one, other in combinations(entries, 2) if _meet(one, other)]


def with_tags(entries: list[Entry], wanted: Iterable[str] = (), unwanted: Iterable[str] = ()) -> list[Entry]:
    needed, refused = ({tag.lower() for tag in tags} for tags in (wanted, unwanted))
    return [entry for entry in entries if needed <= set(entry.tags) and not refused & set(entry.tags)]


def billable(entries: list[Entry], step: int) -> int:
    return sum(-(-minutes(entry) // step) * step for entry in entries)


def reports(entries: list[Entry]) -> dict[str, Callable[[], str]]:
    return {project: partial(_line, project, total) for project, total in by_project(entries).items()}


def _line(project: str, total: int) -> str:
    return f"{project} {clock(total)}"


def _meet(one: Entry, other: Entry) -> bool:
    shift = (other.day - one.day).days * DAY
    return one.start < other.end + shift and other.start + shift < one.end
