"""Builds single-file pages."""
