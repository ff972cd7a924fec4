"""Serve the same pages from this machine, with live progress.

app      which address shows what; how runs go on; the socket and its life; who may ask
label    the page of `bakeoff label`, which takes labels
"""

from bakeoff.report.view.app import make_app, serve, serve_app
from bakeoff.report.view.label import make_label_app

__all__ = ["make_app", "make_label_app", "serve", "serve_app"]
