"""The stages of lexical search v3 and Librarian."""
