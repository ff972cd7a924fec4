"""Serve the same pages from this machine, with live progress.

guard    who may ask: this machine's browser, under our name, with our token
live     how a run goes on, from the end of its journal
watch    which runs of the folder have changed
app      which address shows what
server   the socket and its life
"""

from bakeoff.report.view.app import make_app
from bakeoff.report.view.server import serve

__all__ = ["make_app", "serve"]
