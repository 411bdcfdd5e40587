"""The HTML report: one file with the tables, the figures and every query; figures and verdicts for notebooks."""
