"""Record answers of models, HTTP services and tools, and replay them instead of asking again."""
