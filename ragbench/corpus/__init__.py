"""Markdown files -> documents with sections, code blocks, links and tags."""
