"""Sentences for every exported file: where it comes from and what was measured."""

from __future__ import annotations

from importlib.metadata import version

from ragbench.evaluation.measures import PRIMARY
from ragbench.export.measured_arm import Evidence, MeasuredArm


def sentences(measured: MeasuredArm, evidence: Evidence, caution: str | None) -> list[str]:
    """The sentences, the caution about an unproven gain first."""
    record = measured.results.record
    lines = [
        *([f"CAUTION: {caution}"] if caution else []),
        f"Written by ragbench {version('ragbench')} from arm '{measured.name}' of the run "
        f"{measured.results.folder.name}.",
        f"Pipeline: {measured.settings.pipeline!r}",
        f"Measured on {record['benchmark']['name']} ({record['benchmark']['digest'][:12]}), split {record['split']}, "
        f"{record['topics']} topics.",
    ]
    quality = sorted(measured.quality.items(), key=lambda item: item[0] != PRIMARY)
    lines.append(", ".join(f"{name} {value:.4f}" for name, value in quality) + ".")
    latency = measured.latency
    lines.append(
        "Latency was not measured."
        if latency is None
        else "Latency of a query: "
        + ", ".join(f"{name} {latency[name]:.1f} ms" for name in ("p50", "p95", "p99"))
        + "."
    )
    return [*lines, evidence.sentence]
