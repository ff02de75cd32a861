"""Shared by importers of profiles: stacks become a tree, samples become a report."""
