"""Dask: embeddings and arms of an experiment in other processes, or on other machines."""
