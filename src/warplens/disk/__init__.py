"""What opens, replaces and removes files: by the directory they lie in, along no link.

Nothing else in `src/` does.
"""
