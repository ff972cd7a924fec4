"""Draft test cases from the schemas of tools. See docs/reference/mcp-config.md."""
