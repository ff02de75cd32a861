"""Importers: what other tools recorded, as a report."""
