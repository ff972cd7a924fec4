"""Recorded answers, and using them instead of asking."""
