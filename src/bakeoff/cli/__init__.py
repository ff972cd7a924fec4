"""The command line. `main` holds the commands; what they do is imported when they do it."""
