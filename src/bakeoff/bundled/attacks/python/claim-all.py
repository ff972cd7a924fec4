# include: claim


def looks_true(item, text, texts):
    return True
