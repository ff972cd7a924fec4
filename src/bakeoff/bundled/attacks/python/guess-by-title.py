# include: claim


def looks_true(item, text, texts):
    return len(set(re.findall('[a-z]+', text.lower().split(':')[0])) & set(re.findall('[a-z]+', text.lower()))) > 3
