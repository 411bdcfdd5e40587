"""Searches, models and artefacts on other machines."""
