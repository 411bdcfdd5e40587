"""The parts of an index that searches by other engines read, one module each."""
