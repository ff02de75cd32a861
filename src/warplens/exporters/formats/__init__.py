"""One export format per file."""
