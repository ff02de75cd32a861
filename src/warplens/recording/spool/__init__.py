"""The spool directory of a recording: where it lies, who holds it, how it is written back."""
