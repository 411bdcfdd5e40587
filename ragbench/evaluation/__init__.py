"""Measures, diagnosis, calibration, and what is learned from judged queries."""
