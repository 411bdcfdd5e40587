"""One query from text to hits: stages, the engine that runs them, live searches, the learned order."""
