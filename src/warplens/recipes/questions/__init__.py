"""One recipe per file."""
