"""Shared vocabulary: the tables of a report, their columns and units. Standard library only."""
