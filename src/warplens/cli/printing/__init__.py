"""Prints tables, summaries and messages."""
