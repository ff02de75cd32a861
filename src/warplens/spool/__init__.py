"""Reads what the agent wrote: spool files, the clock log, the launcher's notes."""
