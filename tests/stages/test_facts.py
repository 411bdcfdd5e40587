"""The words by which stages require and forbid one another."""

from __future__ import annotations

import ast
import inspect

from ragbench.extras.systems.state import SystemProperty
from ragbench.search.stages import stage as module
from ragbench.search.stages.stage import StateProperty
from tests.stage_classes import stage_classes


def test_state_properties_are_explained() -> None:
    tree = ast.parse(inspect.getsource(module))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "StateProperty")
    facts = [number for number, line in enumerate(body) if isinstance(line, ast.Assign)]
    assert len(facts) == len(StateProperty)
    for number in facts:
        docstring = body[number + 1]
        assert isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant), ast.unparse(body[number])
    assert all(fact.meaning for fact in StateProperty)


def test_state_properties_are_provided_by_stages() -> None:
    known = [stage for stage in stage_classes() if hasattr(stage, "provides")]
    assert {*StateProperty, *SystemProperty} <= frozenset().union(*(cls.provides for cls in known))
    for cls in known:
        words = cls.requires | cls.provides | set(cls.forbids)
        assert all(isinstance(word, StateProperty | SystemProperty) for word in words), cls
