"""Reads Perfetto traces: the native decoder's columns become tables of a report."""
