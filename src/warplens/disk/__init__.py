"""Opens, replaces and removes files by the directory that holds them, along no link.

Nothing else in `src/` does.
"""
