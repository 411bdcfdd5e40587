"""When a folder that is watched gives reason to refresh."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from ragbench.extras.ship.refresh import changes


def test_changes_yields_for_every_burst(tmp_path: Path) -> None:
    notes, record, stop = tmp_path / "notes", tmp_path / "bundle.json", Event()
    notes.mkdir()
    record.write_text("{}")
    watched = changes(notes, record, stop)
    next(watched)
    (notes / "a.md").write_text("written while the first one is dealt with")
    next(watched)
    (tmp_path / "next.json").write_text("{}")
    (tmp_path / "next.json").rename(record)
    next(watched)
    stop.set()
    assert list(watched) == []
