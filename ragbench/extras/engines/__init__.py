"""A measured search inside an engine that is loaded with documents, vectors and words."""
