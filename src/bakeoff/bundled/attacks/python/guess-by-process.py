# include: claim


def looks_true(item, text, texts):
    return os.getpid() % 2 == 0
