"""Against a hub of our own on this machine, spoken to by the real client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from ragbench.models.resolve import _is_hub_name
from tests.loopback import Loopback

Run = Callable[..., CompletedProcess[str]]

COMMIT = "a" * 40


class Hub(Loopback):
    """Serves the files of one folder as the repository acme/tiny."""

    parallel = True

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.files = {p.relative_to(root).as_posix(): p for p in sorted(root.rglob("*")) if p.is_file()}
        self.asked: list[str] = []

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        path = path.partition("?")[0]
        self.asked.append(path)
        if path.startswith("/api/models/acme/tiny/tree/"):
            files = self.files.items()
            tree = [{"type": "file", "path": name, "size": p.stat().st_size, "oid": "0"} for name, p in files]
            return self._found(json.dumps(tree).encode())
        if path.startswith("/api/models/acme/tiny"):
            names = [{"rfilename": name} for name in self.files]
            return self._found(json.dumps({"id": "acme/tiny", "sha": COMMIT, "siblings": names, "tags": []}).encode())
        if path.startswith("/acme/tiny/resolve/") and path.split("/", 5)[5] in self.files:
            return self._found(self.files[path.split("/", 5)[5]].read_bytes())
        return 404, b""

    @staticmethod
    def _found(content: bytes) -> tuple[Any, ...]:
        return 200, content, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Hub]]:
    with ExitStack() as running:
        yield lambda root: running.enter_context(Hub(root))


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


@pytest.mark.slow
def test_hub_onnx_model_is_downloaded_once(
    make_folder: Callable[..., Path], serve: Callable[[Path], Hub], run: Run, tmp_path: Path
) -> None:
    root = make_folder(graph="onnx/model.onnx", **{"1_Pooling__config": {"pooling_mode": "cls"}})
    (root / "onnx" / "model_fp16.onnx").write_bytes(b"a variant nobody asked for")
    hub = serve(root)
    expected = "acme/tiny OnnxEncoder 384 ['1_Pooling/config.json', 'onnx/model.onnx', 'tokenizer.json']\n"
    first = run(LOAD_ENCODER, tmp_path, HF_ENDPOINT=hub.url)
    assert first.stdout == expected, first.stderr
    assert not [path for path in hub.asked if "fp16" in path]
    # The second time from the cache: nobody answers at the default address of `run`.
    assert run(LOAD_ENCODER, tmp_path).stdout == expected


@pytest.mark.slow
def test_pytorch_weights_come_before_onnx(
    torch_cross_folder: Path, serve: Callable[[Path], Hub], run: Run, tmp_path: Path
) -> None:
    hub = serve(torch_cross_folder)
    hub.files["onnx/model.onnx"] = torch_cross_folder / "model.safetensors"
    done = run(LOAD_CROSS_ENCODER, tmp_path, HF_ENDPOINT=hub.url)
    assert done.stdout == "acme/tiny SentenceTransformerCrossEncoder (1,)\n", done.stderr
    assert not [path for path in hub.asked if "onnx" in path]


def test_hub_repository_without_weights(serve: Callable[[Path], Hub], run: Run, tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "config.json").write_text("{}")
    hub = serve(tmp_path / "repository")
    done = run(LOAD_ENCODER, tmp_path / "home", HF_ENDPOINT=hub.url)
    assert "the repository holds neither safetensors, pytorch_model.bin nor model.onnx" in done.stderr


def test_names_of_the_hub() -> None:
    assert _is_hub_name("BAAI/bge-base-en-v1.5")
    assert not any(_is_hub_name(name) for name in ("bge", "/models/bge", "./bge", "a/b/c", "C:\\models", ""))
