"""Collectives of many ranks: which calls belong together, and who waited for whom."""
