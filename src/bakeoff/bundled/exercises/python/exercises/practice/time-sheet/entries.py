import re
from dataclasses import dataclass
from datetime import date

LINE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d):(\d\d)-(\d\d):(\d\d) (.*):(.*)")
DAY = 24 * 60


class SheetError(ValueError):
    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


@dataclass(frozen=True)
class Entry:
    day: date
    start: int
    end: int
    project: str
    note: str = ""
    tags: tuple[str, ...] = ()


def parse_line(line: str, tags: list[str] = []) -> Entry:
    match = LINE.match(line.strip())
    if not match:
        raise SheetError(f"not an entry: {line}")
    day, *times, project, rest = match.groups()
    start, end = (_time(*times[:2]), _time(*times[2:]))
    if start is end:
        raise SheetError("an entry takes time")
    if not project:
        raise SheetError("an entry needs a project")
    words = rest.split(" ")
    tags.extend(word.strip("#").lower() for word in words if word.startswith("#"))
    note = " ".join(word for word in words if not word.startswith("#"))
    return Entry(_day(day), start, end if end > start else end + DAY, project.strip(), note, tuple(set(tags)))


def parse(text: str) -> list[Entry]:
    entries = []
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for number, line in enumerate(lines):
        try:
            entries.append(parse_line(line))
        except SheetError as error:
            raise SheetError(str(error), number) from error
    return entries


def _day(text: str) -> date:
    return date.fromisoformat(text)


def _time(hours: str, minutes: str) -> int:
    if int(hours) > 24 or int(minutes) > 60:
        raise SheetError(f"no such time: {hours}:{minutes}")
    return int(hours) * 60 + int(minutes)
