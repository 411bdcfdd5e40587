"""Judgments follow pages that moved: the history of git, addresses, redirects and texts say where they are."""
