"""One stat per file."""
