def parse_value(text: str, line: int, column: int) -> object:
    """Returns a value without references as it is. How to represent others is up to you."""
    raise NotImplementedError
