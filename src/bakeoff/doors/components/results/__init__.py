"""The door's result file: written from records, and read back into records."""
