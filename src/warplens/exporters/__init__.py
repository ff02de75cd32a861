"""Exporters: a report in the formats of other tools."""
