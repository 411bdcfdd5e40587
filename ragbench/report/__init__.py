"""Reports of a run: tables, figures, the page, the methods text."""
