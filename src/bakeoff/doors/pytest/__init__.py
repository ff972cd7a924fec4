"""Run evals as pytest tests. This door only translates between pytest and the core."""
