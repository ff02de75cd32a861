"""Converts a spool into the tables of a report."""
