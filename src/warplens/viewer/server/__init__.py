"""The HTTP server of the page: guard, workers, limits."""
