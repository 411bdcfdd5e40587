"""One query from text to hits: stages, the engine that runs them, the ranker."""
