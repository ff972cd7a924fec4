"""Supervise sandboxed commands, one process each. Only the standard library, so that it runs as `python -I -S`."""
