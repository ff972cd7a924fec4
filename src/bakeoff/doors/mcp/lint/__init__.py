"""Find what makes tools hard to choose, to call or to offer, without asking a model. See docs/reference/mcp-lint.md."""
