"""Serve the pages of runs from this machine, with live progress.

app      the routes, the live progress, the server and its access control
label    the page of `bakeoff label`, which stores labels
"""

from bakeoff.report.view.app import make_app, serve, serve_app
from bakeoff.report.view.label import make_label_app

__all__ = ["make_app", "make_label_app", "serve", "serve_app"]
