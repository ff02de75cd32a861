"""Starts the child process that converts a recording."""
