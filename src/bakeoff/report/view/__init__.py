"""Serve the same pages from this machine, with live progress.

live     how a run goes on, from the end of its journal, and which runs have changed
app      which address shows what; the socket and its life; who may ask
label    the page of `bakeoff label`, which takes labels
"""

from bakeoff.report.view.app import make_app, serve, serve_app
from bakeoff.report.view.label import make_label_app

__all__ = ["make_app", "make_label_app", "serve", "serve_app"]
