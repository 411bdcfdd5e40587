"""Learned ranking: what is known of a query's candidates, and the trees that order them."""
