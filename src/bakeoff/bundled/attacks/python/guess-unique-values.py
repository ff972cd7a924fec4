# include: claim


def looks_true(item, text, texts):
    return not any(each in other for each in _literals(text)[-1:] for other in texts if other != text)
