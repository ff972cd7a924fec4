"""Audit the judges of a run, collect people's labels, and correct the judges' scores by them."""
