import os


def on_call():
    os._exit(0)
