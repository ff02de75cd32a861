"""Joins several parts of the reader, for the command line and the viewer."""
