"""Columns are declared once: stored, read again and shown under their headings."""

from __future__ import annotations

from pathlib import Path

from ragbench.base.columns import Column, Columns

FRUIT = Columns.of(Column("name", "fruit", "as sold", text=True), "price", "n", Column("why", text=True))


def test_columns_of_a_table_are_read_as_written(tmp_path: Path) -> None:
    frame = FRUIT.frame([("001", 1.5, 2, ""), ("nan", 2.0, 1, "ripe")])
    frame.to_csv(tmp_path / "fruit.csv", index=False)
    again = FRUIT.read(tmp_path / "fruit.csv")
    assert again["name"].tolist()[0] == "001" and again["why"].tolist() == ["", "ripe"]
    assert list(again.columns) == list(FRUIT) == ["name", "price", "n", "why"]
    assert not len(FRUIT.read(tmp_path / "missing.csv"))


def test_columns_have_headings() -> None:
    assert [FRUIT[name].head for name in ("name", "n")] == [("Fruit", "as sold"), ("n", "")]
