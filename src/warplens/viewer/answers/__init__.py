"""Answers the requests of the page from a report."""
