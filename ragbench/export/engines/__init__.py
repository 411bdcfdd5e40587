"""A measured search inside an engine: SQLite, PostgreSQL or Qdrant, loaded with documents, vectors and words."""
