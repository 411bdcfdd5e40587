"""The words by which stages require and forbid one another."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil

import ragbench.extras.fit.stages
import ragbench.extras.systems.stages
import ragbench.search.stages
from ragbench.search.stages import stage as module
from ragbench.search.stages.stage import StateProperty


def stages() -> list[type]:
    found = []
    packages = (ragbench.search.stages, ragbench.extras.fit.stages, ragbench.extras.systems.stages)
    for name in [
        f"{package.__name__}.{each.name}" for package in packages for each in pkgutil.iter_modules(package.__path__)
    ]:
        here = importlib.import_module(name)
        found += [
            value
            for value in vars(here).values()
            if inspect.isclass(value) and dataclasses.is_dataclass(value) and hasattr(value, "provides")
        ]
    return found


def test_every_fact_is_explained() -> None:
    tree = ast.parse(inspect.getsource(module))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "StateProperty")
    facts = [place for place, line in enumerate(body) if isinstance(line, ast.Assign)]
    assert len(facts) == len(StateProperty)
    for place in facts:
        said = body[place + 1]
        assert isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant), ast.unparse(body[place])
    assert all(fact.meaning for fact in StateProperty)


def test_every_fact_is_provided_and_every_word_is_a_fact() -> None:
    known = stages()
    assert set(StateProperty) <= frozenset().union(*(each.provides for each in known))
    for each in known:
        words = each.requires | each.provides | set(each.forbids)
        assert all(isinstance(word, StateProperty) for word in words), each
