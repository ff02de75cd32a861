"""Capture windows: when recording begins and ends."""
