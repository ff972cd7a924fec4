from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Plant:
    name: str
    every: int
    last: date | None = None
    rests: bool = False


def due_date(plant: Plant, today: date) -> date:
    raise NotImplementedError


def due(plants: list[Plant], today: date) -> list[str]:
    raise NotImplementedError


def next_visit(plants: list[Plant], today: date) -> date | None:
    raise NotImplementedError


def water(plants: list[Plant], names: list[str], today: date) -> list[Plant]:
    raise NotImplementedError
