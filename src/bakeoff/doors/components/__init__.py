"""Choosing a model, with or without MCP servers, that generates components: `bakeoff run`."""
