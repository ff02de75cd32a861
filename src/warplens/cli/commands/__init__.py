"""The commands, one file each: a module docstring, and a `command: click.Command`."""
