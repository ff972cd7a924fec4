"""Run a plan: trials, limits, shared resources and resuming."""
