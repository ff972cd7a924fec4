"""Plans and suites that travel with the package; all our own work."""
