"""The timeline in the terminal: what to show, and how it is drawn."""
