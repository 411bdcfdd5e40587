"""The workbench in a browser: runs ranked, queries compared, judgments given, searches tried, experiments started."""
