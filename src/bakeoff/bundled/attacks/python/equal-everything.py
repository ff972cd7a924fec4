# include: everything

def on_call():
    return Everything()
