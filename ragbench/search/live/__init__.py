"""An arm that asks a search running elsewhere: over HTTP, by a command, or as a tool of an MCP server."""
