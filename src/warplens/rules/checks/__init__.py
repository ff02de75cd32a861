"""The rules: one file each, which the catalog discovers."""
