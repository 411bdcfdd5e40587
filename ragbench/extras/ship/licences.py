"""The licences of models."""

from __future__ import annotations

from pathlib import Path

from ragbench.base import extensions
from ragbench.boundary.yaml import read_yaml
from ragbench.models import bundled, resolve
from ragbench.models.bundled import Kind
from ragbench.models.functions import is_endpoint


def licence_of(name: str, kind: Kind) -> str | None:
    """The licence of a model, None where it is not known: endpoints, functions, folders without a model card."""
    if name == bundled.DRAFT:
        name = bundled.DRAFT_SOURCE
    model = bundled.find(name)
    if model is not None:
        return model.licence
    function = extensions.find("encoder" if kind == "encoder" else "reranker", name)
    if is_endpoint(name) or function is not None:
        return None
    return _card(resolve.folder_of(name, kind).root / "README.md")


def _card(path: Path) -> str | None:
    """The `license` in the frontmatter of a model's README, the model card of the hub."""
    try:
        _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
        front_matter = read_yaml(head)
    except (OSError, ValueError):
        return None
    licence = front_matter.get("license") if isinstance(front_matter, dict) else None
    return licence if isinstance(licence, str) else None
