"""Parts lists in CycloneDX 1.6, of a bundle or of an installation: models with files, packages, digests, licences."""

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


def installed(distribution: str = "ragbench") -> dict[str, str]:
    """Versions by name of an installed distribution and of all that it requires here, directly or not.

    What an extra asks for is part of it only where another distribution requires that extra. What is required and
    not installed is left out: `ragbench doctor` is the place that says so.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    left = [(distribution, "")]
    while left:
        name, extra = left.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        try:
            known = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[known.metadata["Name"]] = known.version
        for requirement in map(Requirement, known.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                left += [(requirement.name, each) for each in ("", *sorted(requirement.extras))]
    return found


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
