"""MCP servers: connecting to several over any transport, and handing their tools to whoever asks."""
