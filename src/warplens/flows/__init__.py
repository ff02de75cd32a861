"""What joins several parts of the desk."""
