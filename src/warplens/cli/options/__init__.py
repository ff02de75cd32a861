"""Command-line options, declared once."""
