"""Converts the CUDA records of a spool to the tables of a report.

One file per kind of table, `tables` puts them together.
"""
