"""Stats: one computed table per file of the `tables` folder."""
