"""Rank subjects over many runs."""
