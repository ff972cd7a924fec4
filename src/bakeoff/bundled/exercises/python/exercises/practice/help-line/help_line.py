from typing import Any


class DefinitionError(ValueError):
    pass


class Machine:
    def __init__(self, definition: dict[str, Any], context: Any = None) -> None:
        raise NotImplementedError

    @property
    def state(self) -> str:
        raise NotImplementedError

    def is_in(self, path: str) -> bool:
        raise NotImplementedError

    def send(self, event: str, data: Any = None) -> bool | None:
        raise NotImplementedError
