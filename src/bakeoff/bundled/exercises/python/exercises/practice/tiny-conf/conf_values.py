def parse_value(text: str, line: int, column: int) -> object:
    """What has no references is given as it is; how you represent what has some is up to you."""
    raise NotImplementedError
