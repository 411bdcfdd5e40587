"""Which topics read like real user questions, and which like words taken from a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Topic

_ASKS = re.compile(
    r"""[?\uff1f]
      | \A(?:how|what|why|when|where|which|who|is|are|can|could|do|does|did|should|would|will|has|have)\b
      | \b(?:I|I'm|I've|[Mm]y|we|our|doesn't|don't|can't|cannot|isn't|won't|fails?|failed|error)\b""",
    re.VERBOSE,
)


def is_question(topic: Topic) -> bool:
    """Whether a topic asks: it ends in a question mark, begins like a question, speaks of oneself, or tells a failure.

    The words are English; in other languages only the question mark counts.
    """
    first, remainder = topic.text[:1].lower(), topic.text[1:]
    return bool(_ASKS.search(first + remainder) or _ASKS.search(topic.text))
