def clusters(text: str) -> list[str]:
    raise NotImplementedError


def width(text: str) -> int:
    raise NotImplementedError


def wrap(text: str, columns: int) -> list[str]:
    raise NotImplementedError
