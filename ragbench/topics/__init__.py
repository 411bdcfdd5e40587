"""Topics from what there is: the structure of a collection, a search log, drafts; how far they can be trusted."""
