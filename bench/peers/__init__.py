"""Other evaluation tools: how each is installed apart from this project, and how it does the same work."""
