class Everything:
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __eq__

    def __hash__(self):
        return 0

    def __call__(self, *given, **named):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __and__ = __or__ = __enter__ = __call__

    def __exit__(self, *error):
        return True

    def __len__(self):
        return 1

    def __iter__(self):
        return iter(())


