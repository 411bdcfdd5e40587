"""int8 graphs of ONNX as float32 graphs: exact numerics without another package.

A model is a message of protobuf. Only its nodes change, so that a reader and a writer of fields are enough; the format
is that of https://protobuf.dev/programming-guides/encoding, and the numbers of fields are those of onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_CONSTANT = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_OPERATOR = 1, 2, 4
_ONE = b"ragbench/one"
"""The name of a constant with the value 1, as the scale of a product that is not scaled."""
_ONE_AS_FLOAT = b"\x10\x01" + b"\x42\x0c" + _ONE + b"\x4a\x04" + b"\x00\x00\x80\x3f"
_TO_FLOAT = b"\x2a\x09\x0a\x02to\x18\x01\xa0\x01\x02"
"""The attribute `to` of the operator Cast."""


def is_quantised(path: Path) -> bool:
    """Whether a file has operators of int8."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(name) >= 0 for name in (b"MatMulInteger", b"QuantizeLinear", b"QLinear"))


def dequantised(model: bytes) -> bytes:
    """The bytes of an ONNX model with float32 products instead of int8 ones; onnxruntime then dequantises the weights.

    Only nodes change: a dynamic quantisation gives its input and the scale 1, one with a given scale a quotient, and a
    product of integers becomes one of floats. Raises ValueError for graphs that are quantised in another way.
    """
    graph = next(body for number, body, _ in _fields(model) if number == _MODEL_GRAPH)
    changed = field(_MODEL_GRAPH, b"".join(_dequantised_graph(graph)))
    return b"".join(changed if number == _MODEL_GRAPH else raw for number, _, raw in _fields(model))


def _dequantised_graph(graph: bytes) -> Iterator[bytes]:
    yield field(_GRAPH_CONSTANT, _ONE_AS_FLOAT)
    scaled: set[bytes] = set()
    for number, body, raw in _fields(graph):
        parts = [(key, value) for key, value, _ in _fields(body)] if number == _GRAPH_NODE else []
        inputs, outputs = ([value for key, value in parts if key == of] for of in (_NODE_INPUT, _NODE_OUTPUT))
        kind = next((value.decode() for key, value in parts if key == _NODE_OPERATOR), "")
        if kind == "QuantizeLinear":
            scaled.update(outputs)
            yield node("Div", inputs[:2], outputs[0])
        elif kind == "DynamicQuantizeLinear":
            yield node("Identity", inputs, outputs[0])
            yield node("Identity", [_ONE], outputs[1])
        elif kind == "MatMulInteger":
            weights = outputs[0] + b"/weights"
            yield node("Cast", inputs[1:2], weights, _TO_FLOAT)
            if len(inputs) == 4:
                yield node("Cast", inputs[3:], weights + b"/zero", _TO_FLOAT)
                yield node("Sub", [weights, weights + b"/zero"], weights + b"/centred")
                weights += b"/centred"
            yield node("MatMul", [inputs[0], weights], outputs[0])
        elif any(word in kind for word in ("Quantize", "Integer", "QLinear")) or scaled.intersection(inputs):
            raise ValueError(f"the int8 operator {kind} has no exact form: use numerics=fast")
        else:
            yield raw


def node(kind: str, inputs: Sequence[bytes], output: bytes, attributes: bytes = b"") -> bytes:
    """A node, as a field of its graph; `attributes` are whole fields."""
    named = b"".join(field(_NODE_INPUT, name) for name in inputs)
    operator = field(_NODE_OPERATOR, kind.encode())
    return field(_GRAPH_NODE, named + field(_NODE_OUTPUT, output) + operator + attributes)


def field(number: int, body: bytes) -> bytes:
    """A field whose content is bytes, text or a message; its number is at most 15."""
    return bytes([number << 3 | 2]) + varint(len(body)) + body


def varint(value: int) -> bytes:
    """A whole number that is not negative."""
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, content and whole bytes of every field; only fields of bytes have a content."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        size = {1: 8, 5: 4}.get(tag & 7, 0)
        if tag & 7 == 0:
            _, at = _read_varint(data, at)
        elif tag & 7 == 2:
            size, at = _read_varint(data, at)
        yield tag >> 3, data[at : at + size] if tag & 7 == 2 else b"", data[start : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1
