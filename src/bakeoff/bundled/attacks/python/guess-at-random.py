# include: claim


def looks_true(item, text, texts):
    return random.random() < 0.5
