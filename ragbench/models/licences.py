"""Under which licence a model is given."""

from __future__ import annotations

from pathlib import Path

import yaml

from ragbench import extensions
from ragbench.models import bundled, resolve
from ragbench.models.bundled import Kind
from ragbench.models.functions import is_endpoint


def licence_of(name: str, kind: Kind) -> str | None:
    """What the card of a model says, None where there is none: endpoints, functions, folders without a card."""
    if name == bundled.DRAFT:
        from ragbench.models.draft import SOURCE

        name = SOURCE
    known = bundled.find(name)
    if known is not None:
        return known.licence
    own = extensions.find("encoder" if kind == "encoder" else "reranker", name)
    if is_endpoint(name) or own is not None:
        return None
    return _card(resolve.folder_of(name, kind).root / "README.md")


def _card(path: Path) -> str | None:
    """The `license` in the frontmatter of a model's README, as the hub has them."""
    try:
        _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
        found = yaml.safe_load(head)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    licence = found.get("license") if isinstance(found, dict) else None
    return licence if isinstance(licence, str) else None
