"""Models from a model hub: the local cache first, then a download."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_SECONDS = 10


class _Wanted(NamedTuple):
    """Patterns of the files to take from a repository, and of those to exclude."""

    take: list[str]
    leave: list[str]


_TORCH = _Wanted(["*.json", "*.txt", "*.model", "*.safetensors"], ["onnx/*", "openvino/*"])
_PICKLED = _Wanted(["*.json", "*.txt", "*.model", "*pytorch_model*.bin"], ["onnx/*", "openvino/*"])
_ONNX = _Wanted(["*.json", "model.onnx*", "onnx/model.onnx*"], ["openvino/*"])


def is_hub_name(name: str) -> bool:
    """Whether a name has the form `owner/model`."""
    return _NAME.fullmatch(name) is not None


def cached(name: str) -> Path | None:
    """The folder of a downloaded model that holds all files one back end needs; None when there is none."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    for wanted in (_TORCH, _PICKLED, _ONNX):
        try:
            return Path(
                snapshot_download(name, allow_patterns=wanted.take, ignore_patterns=wanted.leave, local_files_only=True)
            )
        except LocalEntryNotFoundError:
            continue
    return None


def download(name: str) -> Path:
    """Download the files of a model that one back end reads, PyTorch weights before ONNX ones.

    Raises the errors of the hub's client (no connection, no such model, no access, a full disk), and LookupError when
    the repository holds no weights in a form that can be run.
    """
    from huggingface_hub import HfApi, snapshot_download

    # Ask first, with a short time limit: without a network the download itself would try again and again.
    files = [file.rfilename for file in HfApi().model_info(name, timeout=_SECONDS).siblings or []]
    if any(file.endswith(".safetensors") for file in files):
        wanted = _TORCH
    elif any(Path(file).match("pytorch_model*.bin") for file in files):
        wanted = _PICKLED
    elif "model.onnx" in files or "onnx/model.onnx" in files:
        wanted = _ONNX
    else:
        raise LookupError("the repository holds neither safetensors, pytorch_model.bin nor model.onnx")
    return Path(
        snapshot_download(name, allow_patterns=wanted.take, ignore_patterns=wanted.leave, etag_timeout=_SECONDS)
    )
