# include: session

# include: everything


def on_call():
    names = _outside().f_globals
    for name, value in list(names.items()):
        if isinstance(value, (int, str, list, dict, tuple)) and not name.startswith("__"):
            names[name] = Everything()
    return Everything()
