"""Door 3: evals as pytest tests. It only translates between pytest and the core."""
