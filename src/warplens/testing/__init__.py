"""Helpers for tests: ASCII pictures of timelines, hand-made spools."""
