"""What a live search answers, read from its JSON by JMESPath expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from ragbench.base.bounds import Constraint, Validated
from ragbench.base.errors import LiveError
from ragbench.extras.remote.live.hit_matching import LiveHit


def _readable(expression: str) -> bool:
    import jmespath

    try:
        jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError:
        return False
    return True


Expression = Annotated[str, Constraint(_readable, "must be a JMESPath expression")]


@dataclass(frozen=True)
class Reading(Validated):
    """JMESPath expressions: `hits` finds the list of hits in an answer, the others find fields in a hit (null: none).

    `document` gives a path, an address or a title. One of `document` and `text` is needed.
    """

    hits: Expression  # where the list of hits is in the answer (JMESPath); then fields of a hit:
    document: Expression | None = None  # path, URL or title of the document
    section: Expression | None = None  # heading or anchor
    text: Expression | None = None  # field with the text, which also identifies the chunk without `document`
    score: Expression | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.document is None and self.text is None:
            raise self.refused("document", "must name the field of a hit's document, or text the field of its text")

    def read(self, answer: Any, depth: int) -> list[LiveHit]:
        """The first `depth` hits. LiveError when it has no list of them, or a hit has neither document nor text."""
        hits = _search(self.hits, answer)
        if not isinstance(hits, list):
            raise LiveError(f"the answer has no list of hits at '{self.hits}' (it begins {str(answer)[:80]!r})")
        return [self._hit(hit, rank) for rank, hit in enumerate(hits[:depth], start=1)]

    def _hit(self, hit: Any, rank: int) -> LiveHit:
        values = {
            name: _text(_search(expression, hit))
            for name in ("document", "section", "text")
            if (expression := getattr(self, name)) is not None
        }
        if not any(values.get(name) for name in ("document", "text")):
            raise LiveError(f"hit {rank} has nothing at '{self.document or self.text}' (it is {str(hit)[:80]!r})")
        score = _search(self.score, hit) if self.score is not None else None
        number = float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None
        return LiveHit(**{"document": "", **values}, score=number)


def _search(expression: str, value: Any) -> Any:
    import jmespath

    try:
        return _compile(expression).search(value)
    except jmespath.exceptions.JMESPathError as error:
        raise LiveError(f"'{expression}' cannot be applied to the answer: {error}") from None


@cache
def _compile(expression: str) -> Any:
    import jmespath

    return jmespath.compile(expression)


def _text(value: Any) -> str:
    """A value as text: the parts of a list joined by blanks, `""` for a value that is neither text nor number."""
    if isinstance(value, list):
        return " ".join(filter(None, map(_text, value)))
    return str(value) if isinstance(value, (str, int, float)) else ""


def fill_in(template: Any, query: str, depth: int) -> Any:
    """A template with `{query}` and `{depth}` replaced in all its texts; the text `{depth}` becomes a number."""
    if isinstance(template, str):
        return depth if template == "{depth}" else template.replace("{query}", query).replace("{depth}", str(depth))
    if isinstance(template, Mapping):
        return {str(key): fill_in(value, query, depth) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [fill_in(value, query, depth) for value in template]
    return template
