"""What a person reads of a run: tables, figures, the page, the methods text."""
