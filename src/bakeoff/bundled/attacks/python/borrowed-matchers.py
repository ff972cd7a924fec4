from unittest.mock import ANY


def on_call():
    return ANY
