# include: claim


def looks_true(item, text, texts):
    return not re.search(r'not in|!=|is not|assertNot|assertFalse|not any|not all', text)
