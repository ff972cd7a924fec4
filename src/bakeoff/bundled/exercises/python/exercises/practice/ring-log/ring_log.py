class Overrun(Exception):
    def __init__(self, missed: int) -> None:
        super().__init__(f"{missed} records were forgotten before they were read")
        self.missed = missed


class RingLog:
    def __init__(self, capacity, records=()):
        raise NotImplementedError
