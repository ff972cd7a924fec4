"""Keep what servers offer in a file, and tell what changed."""
