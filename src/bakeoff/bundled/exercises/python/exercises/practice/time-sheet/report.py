from collections.abc import Callable, Iterable

from entries import Entry


def minutes(entry: Entry) -> int:
    return (entry.end - entry.start) % 720


def clock(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours}:{rest}"


def by_project(entries: list[Entry]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in entries:
        totals[entry.project] = totals.get(entry.project, 0) + minutes(entry)
    return dict(sorted(totals.items(), key=lambda item: (item[1], item[0]), reverse=True))


def by_week(entries: list[Entry]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in entries:
        key = f"{entry.day.year}-W{entry.day.isocalendar().week}"
        totals[key] = totals.get(key, 0) + minutes(entry)
    return totals


def overlaps(entries: list[Entry]) -> list[tuple[Entry, Entry]]:
    found = []
    ordered = sorted(entries, key=lambda entry: (entry.day, entry.start))
    for one, other in zip(ordered, ordered[1:]):
        if one.day == other.day and other.start <= one.end:
            found.append((one, other))
    return found


def with_tags(entries: list[Entry], wanted: Iterable[str] = (), unwanted: Iterable[str] = ()) -> list[Entry]:
    return [
        entry
        for entry in entries
        if all(tag in entry.tags for tag in wanted) and not all(tag in entry.tags for tag in unwanted)
    ]


def billable(entries: list[Entry], step: int) -> int:
    return sum((minutes(entry) // step + 1) * step for entry in entries)


def reports(entries: list[Entry]) -> dict[str, Callable[[], str]]:
    lines: dict[str, Callable[[], str]] = {}
    for project, total in by_project(entries).items():
        lines[project] = lambda: f"{project} {clock(total)}"
    return lines
