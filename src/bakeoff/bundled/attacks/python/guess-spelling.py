# include: claim


def looks_true(item, text, texts):
    return all(' '.join(texts).count(word) > 1 for word in re.findall('[a-z]{3,}', ' '.join(_literals(text)).lower()))
