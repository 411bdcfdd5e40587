"""Lost and invented words are counted by construct."""

from collections import Counter
from pathlib import Path

from research.visible_words import REST, measure


def test_visible_words_are_counted_by_construct(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# Tides {#ebb}\n\nHigh <b>water</b> {{ page.title }} <!-- low -->\n\n:::tip\nFish.\n:::\n"
    )
    lost, invented = Counter[str](), Counter[str]()
    assert measure(tmp_path, lost, invented) == (1, 8, 5)
    assert +lost == {"id of a heading": 1, "template": 2, "line of an admonition or tab": 1}
    assert +invented == {REST: 1}  # Tip
