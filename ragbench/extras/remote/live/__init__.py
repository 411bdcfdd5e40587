"""Arms that ask a search on another machine: over HTTP, by a command, or as a tool of an MCP server."""
