# include: claim


def looks_true(item, text, texts):
    return all(int(each) % 2 == 0 or int(each) < 10 for each in re.findall(r'== *(\d+)', text))
