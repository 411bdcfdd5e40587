"""Index files and requests for search servers that users run."""
