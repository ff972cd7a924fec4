"""Plans, suites and exercises that come with the package, all written for it."""
