"""Compare subjects: case by case between runs, with and without treatments, and during a run."""
