"""Searches, models and artefacts on other machines, and execution on Ray."""
