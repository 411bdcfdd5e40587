"""Personal data and secrets that users type into a search by mistake, recognised by their form."""

from __future__ import annotations

import re
from itertools import pairwise

_FORMS = {
    "a mail address": re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w"),
    "a token": re.compile(
        r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|hf|xox[abpr])[-_][\w-]{12,}|\bA(?:KI|SI)A[0-9A-Z]{12,}"
        r"|\beyJ[\w-]{8,}\.[\w-]+|\bbearer\s+[\w.~+/-]{12,}"
        r"|\b(?:password|passwd|pwd|secret|api[-_ ]?key|token)\s*[=:]\s*\S{4,}"
        r"|-----BEGIN [A-Z ]*PRIVATE KEY|://[^\s/:@]+:[^\s/@]+@",
        re.IGNORECASE,
    ),
    "an IP address": re.compile(r"(?<![\d.])(?!127\.|0\.|10\.|192\.168\.)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"),
    "a long number": re.compile(r"(?<![\w.])\+?(?:\d[ ()-]{0,2}){10,}(?![\w:.])"),  # telephone, account, card
}
_RUN = re.compile(r"[A-Za-z0-9+/_-]{24,}")


def personal(text: str) -> str:
    """The kind of personal data in a text (`a mail address`, `a token` ...), empty when none is recognised."""
    for name, form in _FORMS.items():
        if form.search(text):
            return name
    return "a token" if any(_random(run) for run in _RUN.findall(text)) else ""


def _random(run: str) -> bool:
    """Whether a long run of characters looks random: digits between its letters in many places."""
    changes = sum(one.isdigit() != other.isdigit() for one, other in pairwise(run))
    return changes >= len(run) / 6
