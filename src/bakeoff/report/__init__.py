"""Turn records into a summary, and a summary into text, JSON and pages, with pure functions."""
