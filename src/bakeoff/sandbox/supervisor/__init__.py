"""Supervise sandboxed commands, one process each. Run as `python -I -S`, without packages."""
