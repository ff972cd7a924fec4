# include: claim


def looks_true(item, text, texts):
    return int(open("/proc/self/uid_map").read().split()[1]) % 2 == 0
