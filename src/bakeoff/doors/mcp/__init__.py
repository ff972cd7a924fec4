"""Door 4: how well models understand the tools of MCP servers, from a YAML file, in rounds, with thresholds."""
