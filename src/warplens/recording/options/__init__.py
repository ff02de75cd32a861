"""The options of a recording, and the settings that the agents read."""
