from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, init=False, repr=False)
class Clock:
    at: str

    def __init__(self, hour, minute):
        when = datetime(2000, 1, 1) + timedelta(hours=hour, minutes=minute)
        object.__setattr__(self, "at", f"{when:%H:%M}")

    def __str__(self):
        return self.at

    def __repr__(self):
        return f"Clock({int(self.at[:2])}, {int(self.at[3:])})"

    def __add__(self, minutes):
        return Clock(int(self.at[:2]), int(self.at[3:]) + minutes)

    def __sub__(self, minutes):
        return self.__add__(-minutes)
