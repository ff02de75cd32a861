"""Expert rules: what costs time in a report, why, and what to do about it."""
