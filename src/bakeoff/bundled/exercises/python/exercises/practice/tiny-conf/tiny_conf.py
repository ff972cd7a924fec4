def load(text: str) -> dict[str, object]:
    raise NotImplementedError
