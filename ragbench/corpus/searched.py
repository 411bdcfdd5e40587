"""The words of a text as they are indexed and asked, where the text itself is shown as it was written.

Composed letters, and no code points that are never shown.
"""

from __future__ import annotations

import re
import unicodedata

# Unicode's Default_Ignorable_Code_Point: soft hyphens, zero-width spaces, variation selectors, marks of direction. A
# zero-width non-joiner between Arabic letters separates parts of a word, and stays.
IGNORED = re.compile(
    "(?<![\u0600-\u06ff])\u200c|\u200c(?![\u0600-\u06ff])|"
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200d-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What is dropped of words: code points that are never shown."""

KANA = r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"  # without the dot and marks between kana
IDEOGRAPHS = r"\u3400-\u4dbf\u4e00-\u9fff"
HANGUL = r"\uac00-\ud7af"
"""The letters of Japanese, Chinese and Korean, for a class of a regular expression."""


def normalised(text: str) -> str:
    """The text with composed letters (NFC) and without code points that are never shown."""
    return text if text.isascii() else unicodedata.normalize("NFC", IGNORED.sub("", text))
