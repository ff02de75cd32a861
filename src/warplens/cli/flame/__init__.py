"""Flame graphs in the terminal: which samples are looked at, and how their tree is drawn."""
