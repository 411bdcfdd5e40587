"""A pipeline: an ordered, named tuple of stages, checked when it is built."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import canonical, digest
from ragbench.base.html import render
from ragbench.base.types import Filters, Query, QueryState
from ragbench.models.resolve import CrossEncoderSpec
from ragbench.search.engine.modes import ModeSpec
from ragbench.search.stages.filters import filters_of
from ragbench.search.stages.stage import Stage, StateProperty

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.models import CrossEncoder, Encoder
    from ragbench.models.chat import ChatSpec


_S = TypeVar("_S")
_Step = Callable[[str, Stage, Sequence[QueryState], "Index"], Sequence[QueryState]]
"""Runs a named stage over states and an index."""


LONGEST = 10_000
"""Characters of a query that are used, which bounds the time of one search; a note says when there were more."""

_HTML = """\
<ol class="ragbench-pipeline">
{% for name, stage in stages %}
<li><b>{{ name }}</b> {{ stage.describe() }}</li>
{% endfor %}
</ol>
"""


def _call(name: str, stage: Stage, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
    """The default step: runs the stage and nothing else."""
    return stage(states, index)


class MissingInput(ConfigError):
    """A stage whose input no earlier stage provides; `override` turns on a stage that does, empty if unknown."""

    def __init__(self, stage: str, needed: str, override: str) -> None:
        self.meaning, self.override = _attribute(needed, "meaning") or repr(needed), override
        remedy = f"add {override}" if override else "move it later in `order` or turn on the stage that does"
        super().__init__(f"stage '{stage}' needs {self.meaning}, which no stage before it provides: {remedy}")


@dataclass(frozen=True)
class Pipeline:
    """Named stages in the order they run.

    Raises ConfigError for an invalid order: a stage whose input no earlier stage provides, a stage that comes too late,
    a pipeline without fusion. `modes` says what requests may ask for instead of the whole pipeline.
    """

    stages: tuple[tuple[str, Stage], ...]
    modes: Mapping[str, ModeSpec] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        provided: dict[str, str] = {}
        for name, stage in self.stages:
            for needed in sorted(stage.requires - set(provided)):
                later = any(needed in stage.provides for _, stage in self.stages)
                raise MissingInput(name, needed, "" if later else _attribute(needed, "override"))
            for word, reason in sorted(stage.forbids.items()):
                if word in provided:
                    raise ConfigError(f"stage '{name}' cannot follow '{provided[word]}': {reason}")
            for word in stage.provides:
                provided.setdefault(word, name)
        if StateProperty.RANKINGS not in provided:
            raise ConfigError("the pipeline retrieves nothing: turn on at least one of the retrieving stages")
        if StateProperty.FUSED not in provided:
            raise ConfigError("the pipeline has no fusion: turn on the stage 'fuse'")

    def __iter__(self) -> Iterator[tuple[str, Stage]]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __repr__(self) -> str:
        return ", then ".join(stage.describe() for _, stage in self.stages) + "."

    def _repr_html_(self) -> str:
        return render(_HTML, stages=self.stages)

    def all_of(self, cls: type[_S]) -> dict[str, _S]:
        """The stages of a class by their entries of `order`."""
        return {name: stage for name, stage in self.stages if isinstance(stage, cls)}

    def first(self, cls: type[_S]) -> _S | None:
        """The first stage of a class; None without one."""
        return next(iter(self.all_of(cls).values()), None)

    @property
    def needs(self) -> frozenset[str]:
        """The parts of the index that its stages read."""
        return frozenset().union(*(stage.needs for _, stage in self.stages))

    @property
    def encoders(self) -> tuple[str, ...]:
        """The encoders among the parts it needs: that of the index and those of further sources."""
        return tuple(sorted(need for need in self.needs if need.partition(":")[0] == "encoder"))

    @property
    def models(self) -> tuple[CrossEncoderSpec | ChatSpec, ...]:
        """The models that its stages use in addition to the index's encoder, each once, in order."""
        return tuple(dict.fromkeys(model for _, stage in self.stages for model in stage.models))

    def digests(self, index: Index) -> dict[str, str]:
        """The digest of every encoder and cross-encoder that it uses, by name. ModelError when one cannot be found."""
        used: list[Encoder | CrossEncoder] = [index.part(need) for need in self.encoders]
        used += [index.models.cross_encoder(spec) for spec in self.models if isinstance(spec, CrossEncoderSpec)]
        return {model.name: model.digest for model in used}

    @property
    def live(self) -> bool:
        """Whether it asks an external search: such a pipeline cannot be prepared, masked or exported."""
        return any(stage.outside for _, stage in self.stages)

    @property
    def recorded(self) -> bool:
        """Whether its hits were recorded before: they belong to topics, and nothing of it can be timed or asked."""
        return any(stage.recorded for _, stage in self.stages)

    @property
    def lasting(self) -> bool:
        """Whether equal fingerprints mean equal results in another process; an object has a name there at most."""
        return all(stage.lasting for _, stage in self.stages)

    @property
    def fingerprint(self) -> str:
        """A digest over its stages, their parameters, and the content of the run file that one may read."""
        contents = [stage.content for _, stage in self.stages if stage.content]
        return digest([*([name, canonical(stage)] for name, stage in self.stages), *contents])

    def require_topics(self, qids: Sequence[str]) -> None:
        """Raise LiveError when a stage has recorded hits, but none for these topics, or cannot open its index."""
        for _, stage in self.stages:
            stage.require_topics(qids)

    def steps(
        self, states: Sequence[QueryState], index: Index, step: _Step = _call
    ) -> Iterator[tuple[str, Sequence[QueryState]]]:
        """The name of each stage and the states after it, one stage at a time.

        This is the only loop over stages: observers of a pipeline iterate over it. `step` runs a stage.
        """
        for name, stage in self.stages:
            states = step(name, stage, states, index)
            yield name, states

    def __call__(self, queries: Sequence[Query], index: Index) -> list[QueryState]:
        """Run queries through every stage."""
        states: Sequence[QueryState] = ()
        for _, states_after in self.steps(start(queries), index):
            states = states_after
        return list(states)


def _attribute(name: str, attribute: str) -> str:
    return next((str(getattr(property_, attribute)) for property_ in StateProperty if property_ == name), "")


def start(queries: Sequence[Query]) -> list[QueryState]:
    """The states with which a pipeline begins; the texts lose control characters and outer white space.

    Raises ConfigError for a query whose filter cannot be used.
    """
    states = [QueryState(replace(query, text=clean(query.text)), filters=_filters(query)) for query in queries]
    note = f"only the first {LONGEST:,} characters of the query are used"
    return [state.with_note(note) if len(state.query.text) == LONGEST else state for state in states]


def _filters(query: Query) -> Filters | None:
    """The filter of the query, None without one. Raises ConfigError, with the query, for one that cannot be used."""
    try:
        conditions = filters_of(query.filter).conditions if query.filter else Filters()
    except ConfigError as error:
        raise ConfigError(f"query '{query.qid}': {error}") from None
    return None if conditions == Filters() else conditions


def clean(text: str) -> str:
    """The text without control characters and outer white space, and no more than its first `LONGEST` characters."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()[:LONGEST]
