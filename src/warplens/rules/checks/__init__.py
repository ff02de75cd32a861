"""The rules: one file each, found by the catalog."""
