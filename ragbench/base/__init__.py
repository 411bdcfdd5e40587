"""Values, errors, files, bounds, the terminal: what every other room needs."""
