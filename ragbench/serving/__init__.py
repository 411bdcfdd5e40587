"""A bundle at the service of others: over HTTP and over MCP, with limits and metrics, reloaded without a pause."""
