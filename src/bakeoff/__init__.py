"""Bakeoff."""
