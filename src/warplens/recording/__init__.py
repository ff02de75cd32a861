"""Records a program: starts it with the agent in it, or records its own process."""
