"""The installation: its parts, and the index artefacts on disk."""
