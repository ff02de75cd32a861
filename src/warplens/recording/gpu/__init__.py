"""Reads GPU clocks, power and use while a program is recorded."""
