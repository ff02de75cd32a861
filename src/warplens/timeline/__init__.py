"""The rows of a timeline and the index that they are drawn from."""
