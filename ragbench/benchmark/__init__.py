"""Benchmarks: documents, topics and judgments; their loaders and the tools that make and check them."""
