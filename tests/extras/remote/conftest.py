"""Two kinds of shared stores: a folder and a real S3 protocol server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    """The address of a server that speaks S3."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'ragbench[s3]'")
    server = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[s3]' flask-cors")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "shared")
    return request.getfixturevalue("bucket")


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"bucket-{uuid.uuid4().hex[:8]}"
    s3fs.S3FileSystem().mkdir(name)
    return f"s3://{name}/artefacts"
