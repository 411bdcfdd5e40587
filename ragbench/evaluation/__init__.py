"""Measures, losses by stage, and times of one arm."""
