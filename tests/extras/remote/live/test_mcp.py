"""Tools of a real MCP server, over standard input and output."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragbench.extras.remote.live import mcp
from ragbench.extras.remote.live.client import RequestFailed

PROGRAM = [sys.executable, str(Path(__file__).parent / "mcp_server.py")]


@pytest.mark.parametrize("server", ["program", "address"])
def test_tool_is_called_over_one_connection(server: str, mcp_address: str) -> None:
    ask = mcp.asking(
        PROGRAM if server == "program" else mcp_address, "search", {"query": "{query}", "limit": "{depth}"}, 30
    )
    assert ask("lamps", 1) == {"notes": [{"file": "guides/schedules.md", "asked": "lamps"}]}
    assert len(ask("lamps", 3)["notes"]) == 3
    with pytest.raises(RequestFailed) as raised:
        ask("fail", 3)
    assert "no such index" in str(raised.value)
    assert not raised.value.again


def test_text_that_is_json_is_read() -> None:
    ask = mcp.asking(PROGRAM, "plain", {"query": "{query}"}, 30)
    answer = ask("a.md", 1)
    assert answer in ([{"file": "a.md"}], {"result": '[{"file": "a.md"}]'})


def test_server_that_does_not_start_is_one_sentence() -> None:
    with pytest.raises(RequestFailed):
        mcp.asking([sys.executable, "-c", "raise SystemExit(3)"], "search", {}, 5)("x", 1)
    with pytest.raises(RequestFailed):
        mcp.asking(["/no/such/program"], "search", {}, 5)("x", 1)
