"""Sessions: start, stop and status of a recording from another terminal or from the program itself."""
