"""Find out which retrieval ideas improve search over your markdown documentation, by how much, at what cost."""
