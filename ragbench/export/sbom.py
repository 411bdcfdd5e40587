"""The parts list of a bundle in CycloneDX 1.6: models with their files, packages, digests and licences."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

_SPDX = {"mit": "MIT", "apache-2.0": "Apache-2.0", "bsd-3-clause": "BSD-3-Clause", "cc-by-4.0": "CC-BY-4.0"}
"""The SPDX names of licences, by their names in model cards."""


def parts(name: str, models: Sequence[Mapping[str, Any]], packages: Mapping[str, str]) -> dict[str, Any]:
    """The list, from the models and packages of a record; it has no date, so equal bundles have equal lists."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "bundle", "name": name}},
        "components": [
            *(_model(model) for model in models),
            *(_package(package, version) for package, version in sorted(packages.items())),
        ],
    }


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    name = str(model["name"])
    files = [
        {"type": "file", "bom-ref": f"model:{name}/{path}", "name": path, "hashes": _sha256(digest)}
        for path, digest in sorted(model["weights"].items())
    ]
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{name}",
        "name": name,
        "description": str(model["kind"]),
        "hashes": _sha256(model["digest"]),
        **_licence(model["licence"]),
        **({"components": files} if files else {}),
    }


def _package(name: str, version: str) -> dict[str, Any]:
    about = importlib.metadata.metadata(name).json
    licence = about.get("license_expression")
    return {
        "type": "library",
        "bom-ref": f"package:{name}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
        **({"licenses": [{"expression": licence}]} if licence else {}),
    }


def _sha256(digest: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": digest}]


def _licence(words: str | None) -> dict[str, Any]:
    if words is None:
        return {}
    known = _SPDX.get(words.lower())
    return {"licenses": [{"license": {"id": known} if known else {"name": words}}]}
