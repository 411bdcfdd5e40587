"""A search that runs elsewhere, asked as an arm: over HTTP, by a command, or as a tool of an MCP server."""
