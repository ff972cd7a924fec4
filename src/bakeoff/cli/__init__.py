"""The command line. `main` holds the commands; their modules are imported when they run."""
