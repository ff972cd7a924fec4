from dataclasses import dataclass, replace
from datetime import date, timedelta


@dataclass(frozen=True)
class Plant:
    name: str
    every: int
    last: date | None = None
    rests: bool = False

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"a plant cannot be watered every {self.every} days")


def due_date(plant: Plant, today: date) -> date:
    day = today if plant.last is None else plant.last + timedelta(days=plant.every)
    if not plant.rests or day.month not in (12, 1, 2):
        return day
    return date(day.year + (day.month == 12), 3, 1)


def due(plants: list[Plant], today: date) -> list[str]:
    thirsty = [plant for plant in plants if due_date(plant, today) <= today]
    thirsty.sort(key=lambda plant: (plant.last is not None, due_date(plant, today), plant.name.casefold()))
    return [plant.name for plant in thirsty]


def next_visit(plants: list[Plant], today: date) -> date | None:
    return min((max(today, due_date(plant, today)) for plant in plants), default=None)


def water(plants: list[Plant], names: list[str], today: date) -> list[Plant]:
    known = {plant.name for plant in plants}
    for name in names:
        if name not in known:
            raise KeyError(name)
    return [replace(plant, last=today) if plant.name in names else plant for plant in plants]
