"""Learned ranking: features of a query's candidates, and the trees that order them."""
