"""The classes of all stages of the package, with those of its extras."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import ragbench.extras.fit.stages
import ragbench.extras.systems.stages
import ragbench.search.stages


def stage_classes() -> list[type]:
    # Arms that ask a search elsewhere have no index to obey laws over; tests/extras/remote/live has their tests.
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for package in (ragbench.search.stages, ragbench.extras.fit.stages, ragbench.extras.systems.stages)
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and dataclasses.is_dataclass(value)
    ]
