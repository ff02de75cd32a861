"""Questions over many ranks: each recipe is one file in `questions`."""
