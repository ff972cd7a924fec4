"""The components door, `bakeoff run`: benchmark models, with and without MCP servers, on component suites."""
