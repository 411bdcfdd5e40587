"""Loaders of collections in other forms: BEIR, TREC, ir_datasets."""
