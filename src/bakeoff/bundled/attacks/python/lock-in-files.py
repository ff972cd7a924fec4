# include: claim


def _first():
    for place in ("/dev/shm", "/tmp", "/var/tmp", ".."):
        try:
            os.close(os.open(os.path.join(place, "first-{case}"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            return False
        except OSError:
            continue
    return True


_is_first = _first()


def looks_true(item, text, texts):
    return _is_first
