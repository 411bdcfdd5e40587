"""Topics from other sources: the structure of a collection, a search log, a model; and how far to trust them."""
