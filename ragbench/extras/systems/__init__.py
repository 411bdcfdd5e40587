"""The seeds' other systems: lexical search v3 (seed 002) and Librarian (seed 004)."""
