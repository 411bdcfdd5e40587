"""Searches and models on other machines."""
