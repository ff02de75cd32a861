"""Starts the program with the agent in it, and follows the processes that it starts."""
