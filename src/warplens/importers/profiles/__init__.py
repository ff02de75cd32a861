"""What importers of profiles share: stacks that become a tree, and a report of samples alone."""
