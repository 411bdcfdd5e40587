"""Measures, statistics, verdicts and diagnosis."""
