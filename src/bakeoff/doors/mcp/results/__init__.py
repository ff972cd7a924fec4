"""The reports in `mcp-report/`, as data, Markdown, page and log: for one suite, and for several together."""
