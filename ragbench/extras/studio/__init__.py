"""The workbench in a browser: rank runs, compare queries, give judgments, try searches, start experiments."""
