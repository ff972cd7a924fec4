"""Supervise sandboxed commands, one process each, using only the standard library."""
