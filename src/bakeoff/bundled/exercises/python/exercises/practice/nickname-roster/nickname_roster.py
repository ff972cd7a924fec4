def short_names(names: list[str]) -> list[str]:
    raise NotImplementedError
