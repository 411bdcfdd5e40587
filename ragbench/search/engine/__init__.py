"""Pipelines, run over queries with shared work done once, and explained."""
