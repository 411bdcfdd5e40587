"""A little MCP server, started by the tests as a program: over standard input and output, or over HTTP with a port."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("notes")


@server.tool()
def search(query: str, limit: int = 5) -> dict[str, list[dict[str, str]]]:
    """Three notes, whatever is asked."""
    if query == "fail":
        raise ToolError("no such index")
    names = ["guides/schedules.md", "elsewhere/unknown.md", "backup.md"]
    return {"notes": [{"file": name, "asked": query} for name in names[:limit]]}


@server.tool()
def plain(query: str) -> str:
    """JSON in a text."""
    return f'[{{"file": "{query}"}}]'


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
