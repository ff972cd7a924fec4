"""Report the evals of pytest: outcomes, the numbers of suites, their gates, blocks and files."""
