"""Bundles that answer elsewhere: write, open, verify, refresh, roll back, and serve over HTTP and MCP."""
