"""Score the calls of MCP tools that a model made: the calls, their results, the end state, and a judge's grade."""
