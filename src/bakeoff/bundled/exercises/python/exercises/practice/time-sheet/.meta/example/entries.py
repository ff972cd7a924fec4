import re
from dataclasses import dataclass
from datetime import date

LINE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d):(\d\d)-(\d\d):(\d\d) ([^:]*):(.*)")
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


def parse_line(line: str) -> Entry:
    match = LINE.fullmatch(line.strip())
    if not match:
        raise SheetError(f"not an entry: {line}")
    day, *times, project, rest = match.groups()
    start, end = (_time(*times[:2]), _time(*times[2:]))
    if start == end:
        raise SheetError("an entry takes time")
    if not project.strip():
        raise SheetError("an entry needs a project")
    words = rest.split()
    tags = dict.fromkeys(word[1:].lower() for word in words if word.startswith("#"))
    note = " ".join(word for word in words if not word.startswith("#"))
    return Entry(_day(day), start, end if end > start else end + DAY, project.strip(), note, tuple(tags))


def parse(text: str) -> list[Entry]:
    entries = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        try:
            entries.append(parse_line(line))
        except SheetError as error:
            raise SheetError(str(error), number) from error
    return entries


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SheetError(f"no such day: {text}") from None


def _time(hours: str, minutes: str) -> int:
    total = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or total > DAY:
        raise SheetError(f"no such time: {hours}:{minutes}")
    return total
