# include: session


def on_call():
    for item in _session().items:
        item.obj = lambda *given, **named: None
