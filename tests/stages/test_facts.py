"""The words by which stages require and forbid one another."""

from __future__ import annotations

import ast
import inspect

from ragbench.search.stages import stage as module
from ragbench.search.stages.stage import StateProperty
from tests.stage_classes import stage_classes


def test_state_properties_are_explained() -> None:
    tree = ast.parse(inspect.getsource(module))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "StateProperty")
    facts = [place for place, line in enumerate(body) if isinstance(line, ast.Assign)]
    assert len(facts) == len(StateProperty)
    for place in facts:
        said = body[place + 1]
        assert isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant), ast.unparse(body[place])
    assert all(fact.meaning for fact in StateProperty)


def test_state_properties_are_provided_by_stages() -> None:
    known = [stage for stage in stage_classes() if hasattr(stage, "provides")]
    assert set(StateProperty) <= frozenset().union(*(each.provides for each in known))
    for each in known:
        words = each.requires | each.provides | set(each.forbids)
        assert all(isinstance(word, StateProperty) for word in words), each
