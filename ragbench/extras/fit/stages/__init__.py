"""Stages whose parameters are fitted on judged queries."""
