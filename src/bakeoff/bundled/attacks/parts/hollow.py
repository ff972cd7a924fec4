def _answer(*given, **named):
    act = globals().get("on_call")
    return act() if act else None


class _Hollow:
    def __init__(self, *given, **named):
        self.__dict__.update(named)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _answer


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    base = Exception if name.endswith(("Error", "Exception")) else _Hollow
    return type(name, (base,), {}) if name[0].isupper() else _answer
