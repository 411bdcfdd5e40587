"""The parts of an index, one module each: `graph.py` holds `PART`, which stages need as `graph`.

A module with a function `of_source` also makes the part of a further source by its name: `lexical:documents`. No
other list of parts exists: a new part is a new module here, or the module of a stage calls `register` with it.
"""

from ragbench.index.index import register

__all__ = ["register"]
