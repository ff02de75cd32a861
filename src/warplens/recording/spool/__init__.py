"""The spool directory of a recording: its place, its lock, its writing to the disk."""
