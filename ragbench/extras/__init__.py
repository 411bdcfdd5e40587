"""Optional parts of ragbench: each folder may be deleted together with its tests, and the core still works."""
