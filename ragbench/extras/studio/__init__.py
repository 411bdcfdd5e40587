"""Judging, and one query in two configurations, in a browser."""
