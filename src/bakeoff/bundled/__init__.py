"""Plans, suites and exercises that are bundled with the package; all our own work."""
