"""Against a hub of our own on this machine, spoken to by the real client."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ragbench.models.hub import is_hub_name

Run = Callable[..., CompletedProcess[str]]

COMMIT = "a" * 40


class Hub(ThreadingHTTPServer):
    """Serves the files of one folder as the repository acme/tiny."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {p.relative_to(root).as_posix(): p for p in sorted(root.rglob("*")) if p.is_file()}
        self.asked: list[str] = []


class Answer(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        if path.startswith("/api/models/acme/tiny/tree/"):
            tree = [
                {"type": "file", "path": name, "size": p.stat().st_size, "oid": "0"}
                for name, p in self.server.files.items()
            ]
            self.send(json.dumps(tree).encode())
        elif path.startswith("/api/models/acme/tiny"):
            files = [{"rfilename": name} for name in self.server.files]
            self.send(json.dumps({"id": "acme/tiny", "sha": COMMIT, "siblings": files, "tags": []}).encode())
        elif path.startswith("/acme/tiny/resolve/") and path.split("/", 5)[5] in self.server.files:
            self.send(self.server.files[path.split("/", 5)[5]].read_bytes())
        else:
            self.send_error(404)

    def send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Hub]]:
    running: list[Hub] = []

    def start(root: Path) -> Hub:
        hub = Hub(root)
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        running.append(hub)
        return hub

    yield start
    for hub in running:
        hub.shutdown()
        hub.server_close()


LOAD_ENCODER = (
    "from ragbench.models.resolve import *\n"
    "encoder = load_encoder(EncoderSpec('acme/tiny'))\n"
    "print(encoder.name, type(encoder).__name__, encoder.dim, sorted(encoder.weights))\n"
)
LOAD_CROSS_ENCODER = (
    "from ragbench.models.resolve import *\n"
    "model = load_cross_encoder(CrossEncoderSpec('acme/tiny', max_length=32))\n"
    "print(model.name, type(model).__name__, model.score('a', ['b']).shape)\n"
)


def test_an_onnx_model_is_downloaded_once(
    make_folder: Callable[..., Path], serve: Callable[[Path], Hub], run: Run, tmp_path: Path
) -> None:
    root = make_folder(graph="onnx/model.onnx", **{"1_Pooling__config": {"pooling_mode": "cls"}})
    (root / "onnx" / "model_fp16.onnx").write_bytes(b"a variant nobody asked for")
    hub = serve(root)
    expected = "acme/tiny OnnxEncoder 384 ['1_Pooling/config.json', 'onnx/model.onnx', 'tokenizer.json']\n"
    first = run(LOAD_ENCODER, tmp_path, HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}")
    assert first.stdout == expected, first.stderr
    assert not [path for path in hub.asked if "fp16" in path]
    # The second time from the cache: nobody answers at the default address of `run`.
    assert run(LOAD_ENCODER, tmp_path).stdout == expected


def test_pytorch_weights_come_before_onnx(
    torch_cross_folder: Path, serve: Callable[[Path], Hub], run: Run, tmp_path: Path
) -> None:
    hub = serve(torch_cross_folder)
    hub.files["onnx/model.onnx"] = torch_cross_folder / "model.safetensors"
    done = run(LOAD_CROSS_ENCODER, tmp_path, HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}")
    assert done.stdout == "acme/tiny SentenceTransformerCrossEncoder (1,)\n", done.stderr
    assert not [path for path in hub.asked if "onnx" in path]


def test_a_repository_without_weights(serve: Callable[[Path], Hub], run: Run, tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "config.json").write_text("{}")
    hub = serve(tmp_path / "repository")
    done = run(LOAD_ENCODER, tmp_path / "home", HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}")
    assert "the repository holds neither safetensors, pytorch_model.bin nor model.onnx" in done.stderr


def test_names_of_the_hub() -> None:
    assert is_hub_name("BAAI/bge-base-en-v1.5")
    assert not any(is_hub_name(name) for name in ("bge", "/models/bge", "./bge", "a/b/c", "C:\\models", ""))
