"""The messages of protobuf that make an ONNX model; the numbers of fields are those of onnx.proto."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.models.exact_onnx import field, node, varint

_TYPES = {"f4": 1, "u1": 2, "i1": 3, "i8": 7, "f2": 10}
"""The numbers of types of elements."""
FLOAT = _TYPES["f4"]

_IR_VERSION, _OPERATORS = 9, 20
_CONTRIB = b"com.microsoft"
"""The domain of operators that onnxruntime adds to the standard."""


class GraphWriter:
    """Nodes and constants, in the order of computation."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._known: set[str] = set()

    def node(self, kind: str, inputs: Sequence[str], output: str, contrib: bool = False, **attributes: Any) -> str:
        """Add an operation with attributes that are integers, floats or strings; returns the name of its output."""
        more = [_attribute(name, value) for name, value in attributes.items()]
        more += [field(7, _CONTRIB)] if contrib else []
        self._parts.append(node(kind, [name.encode() for name in inputs], output.encode(), b"".join(more)))
        return output

    def constant(self, name: str, values: Any, dtype: str = "f4") -> str:
        """Add an array, unless one of this name was added; returns its name."""
        if name not in self._known:
            self._known.add(name)
            array: NDArray[Any] = np.asarray(values, dtype=f"<{dtype}")
            shape = b"".join(_number(1, length) for length in array.shape)
            named = field(8, name.encode()) + field(9, array.tobytes())
            self._parts.append(field(5, shape + _number(2, _TYPES[dtype]) + named))
        return name

    def model(self, name: str, output: str, width: int) -> bytes:
        """The model: from `input_ids`, shape (1, tokens), to `output`, shape (1, tokens, width)."""
        ends = field(11, _value("input_ids", "i8", ())) + field(12, _value(output, "f4", (width,)))
        graph = field(7, b"".join(self._parts) + field(2, name.encode()) + ends)
        sets = field(8, _number(2, _OPERATORS)) + field(8, field(1, _CONTRIB) + _number(2, 1))
        return _number(1, _IR_VERSION) + graph + sets


def _number(key: int, value: int) -> bytes:
    return varint(key << 3) + varint(value % 2**64)  # a negative number as its complement


def _attribute(name: str, value: float | str) -> bytes:
    if isinstance(value, float):
        content, kind = varint(2 << 3 | 5) + struct.pack("<f", value), 1
    elif isinstance(value, int):
        content, kind = _number(3, value), 2
    else:
        content, kind = field(4, value.encode()), 3
    return field(5, field(1, name.encode()) + content + _number(20, kind))


def _value(name: str, dtype: str, more: Iterable[int]) -> bytes:
    """The name, type and shape (1, tokens, *more) of an array."""
    sizes = [field(1, _number(1, 1)), field(1, field(2, b"tokens")), *(field(1, _number(1, size)) for size in more)]
    shaped = _number(1, _TYPES[dtype]) + field(2, b"".join(sizes))
    return field(1, name.encode()) + field(2, field(1, shaped))
