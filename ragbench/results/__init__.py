"""Finished runs: kept in folders, read for everything that shows them."""
