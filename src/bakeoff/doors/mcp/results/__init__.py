"""The files in `mcp-report/`: a report as data, as Markdown and as a page, for one suite and for many, and logs."""
