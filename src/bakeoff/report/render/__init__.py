"""Render blocks for a terminal, as Markdown and as self-contained pages."""
