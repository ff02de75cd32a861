"""Expert rules: the costs in a report, their causes and fixes."""
