"""Provide small tools that know nothing of trials."""
