"""Serve a bundle over HTTP and MCP, with limits and metrics, and reload it without a pause."""
