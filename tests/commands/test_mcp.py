"""`ragbench serve mcp` as a process, talked to over its standard input and output by the SDK's client."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

import ragbench
from ragbench.commands import cli
from ragbench.search.engine.answer import as_mapping

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.slow
def test_an_agent_searches(small_bundle: Path) -> None:
    async def session():
        server = StdioServerParameters(command=sys.executable, args=["-m", "ragbench", "mcp", str(small_bundle)])
        async with Client(stdio_client(server)) as client:
            tools = await client.list_tools()
            found = await asyncio.gather(
                *(client.call_tool("search", {"query": "getUserById", "top_n": 1}) for _ in range(8))
            )
            cited = (await client.call_tool("search", {"query": "getUserById", "max_tokens": 300})).content[0].text
            read = (await client.call_tool("read", {"path": cited.partition("\n")[0]})).content[0].text
            refused = [
                (await client.call_tool("search", {"query": "a", "max_tokens": budget})).content[0].text
                for budget in (0, -1, 10**9)
            ]
            return tools, found, cited, read, refused

    tools, found, cited, read, refused = asyncio.run(session())
    assert cited.startswith("[1] api-reference.md#") and read.startswith("api-reference.md:") and "getUserById" in read
    assert all(sentence.startswith("max_tokens: input should be") for sentence in refused)
    assert [tool.name for tool in tools.tools] == ["search", "read", "outline", "related", "search_with_hypothesis"]
    assert {result.structured_content["hits"][0]["docno"] for result in found} == {"api-reference"}
    with ragbench.load(small_bundle) as loaded:
        expected = as_mapping(loaded.answer("getUserById", 1))["hits"]
    assert all(result.structured_content["hits"] == expected for result in found)


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["end of input", signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_told_to(small_bundle: Path, stop) -> None:
    command = [sys.executable, "-m", "ragbench", "mcp", str(small_bundle)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdin.write(json.dumps(HELLO) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["result"]["serverInfo"]["name"] == "ragbench"
        if stop != "end of input":
            process.send_signal(stop)
            assert process.wait(30) == 0
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def test_no_bundle_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "is not a bundle" in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")
