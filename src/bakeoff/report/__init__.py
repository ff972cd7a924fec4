"""Turn records into summaries, and summaries into text, JSON and pages."""
