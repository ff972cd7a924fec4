"""REPORT: pure functions from records to a summary, and from a summary to text, JSON and pages."""
