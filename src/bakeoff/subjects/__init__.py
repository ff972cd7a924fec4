"""The built-in kinds of subjects."""
