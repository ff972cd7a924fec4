"""Test how well models understand the tools of MCP servers: a YAML file with prompts and the calls that they expect."""
