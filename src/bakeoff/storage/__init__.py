"""Everything that touches a run on disk."""
