"""Run a plan: trials, limits, resources, resume."""
