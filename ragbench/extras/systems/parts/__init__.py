"""The parts of an index that lexical search v3 reads, one module each."""
