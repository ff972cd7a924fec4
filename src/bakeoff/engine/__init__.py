"""Carrying out a plan: trials, limits, resources, resume."""
