"""The agent library: where it is, its settings, how it is loaded into a program."""
