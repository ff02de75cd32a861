"""Starting a program so that the agent records it. Standard library only: this runs beside the traced program."""
