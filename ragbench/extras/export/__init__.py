"""A measured configuration as a file for production, and the gate that compares runs."""
