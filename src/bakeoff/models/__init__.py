"""Models: every provider by name, the cost of calls, their limits, and their replay."""
