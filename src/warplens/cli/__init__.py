"""The command line. One file in `commands` is one command; only this package prints."""
