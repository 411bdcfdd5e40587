"""All that enters or leaves the process: JSON, YAML, HTTP and names of files, each with limits.

Whatever is wrong with content from outside becomes one BoundaryError, whose message is the reason. No other room parses
JSON or YAML or opens a connection; `tests/test_architecture.py` checks that.
"""
