"""Two hundred hostile addresses: nothing is imported, started, sent, or shown of the environment."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.config import catalogue
from ragbench.extras.ship.access import Session
from ragbench.extras.studio.app import Studio, create_app, url

SECRET = "s3cret-of-the-environment"


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [False, True])
def test_an_address_only_shows(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server, read_only: bool
) -> None:
    monkeypatch.setenv("RAGBENCH_SECRET", SECRET)
    (tmp_path / "evil_of_address.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **options: started.append(given))
    groups = [group.name for group in catalogue.read().switches]
    live = f"live=http live.url={server.url}/?q={{query}} live.hits=h live.text=t"
    program = f"live=command 'live.program=[touch,{tmp_path / 'ran'}]' live.hits=h live.text=t"
    hostile = [
        *(f"{name}._target_=evil_of_address.X" for name in groups),
        *(f"+{name}={{_target_: evil_of_address.X}}" for name in ("mine", "fuse", "cut")),
        *(f"{key}=${{oc.env:RAGBENCH_SECRET}}" for key in ("name", "index.encoder.name", "fuse.k", "hyde.text")),
        f"hyde=on hyde.endpoint={server.url}/v1 hyde.model=m",
        f"expand_queries=on expand_queries.endpoint={server.url}/v1 expand_queries.model=m",
        f"tracking.uri={server.url}",
        "index.encoder.name=openai:small",
        "index.encoder.name=owner/model",
        live,
        program,
        "++hydra.searchpath=[file:///tmp]",
    ]
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    studio = Studio(tmp_path, words, Session(read_only=read_only))
    client = TestClient(create_app(studio), base_url="http://127.0.0.1")
    client.cookies.set(studio.access.cookie, studio.access.token)
    addresses = [
        address
        for typed in hostile
        for address in (
            url("/search", q="lamps", left=typed, right="exp=lexical_only"),
            url("/experiments", command="run", words=typed),
            url("/experiments", command="ablate", exp=typed.partition("=")[2] or "x", words="p6=on"),
        )
    ]
    assert len(addresses) > 100
    for address in itertools.chain(addresses):
        answer = client.get(address)
        assert answer.status_code < 500, address
        assert SECRET not in answer.text, address
        assert '<ol class="hits">' not in answer.text or read_only, address
    assert server.requests == []
    assert "evil_of_address" not in sys.modules and not (tmp_path / "ran").exists()
    assert started == [] and studio.jobs.all() == []
