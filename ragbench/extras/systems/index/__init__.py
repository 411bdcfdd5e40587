"""The indexes of lexical search v3."""
