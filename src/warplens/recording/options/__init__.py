"""What to record: the options of a recording, and the settings that the agents read."""
