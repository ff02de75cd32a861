"""Reads the recording: spool files, the clock log, the launcher's notes."""
