"""Models with other back ends than ONNX: PyTorch, a wheel for many languages, a table of token vectors."""
