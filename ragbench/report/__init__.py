"""Reports of a run: tables, figures, the page."""
