"""Queries and judgments: derive queries, read logs, pool, judge, measure agreement."""
