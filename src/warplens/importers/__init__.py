"""Importers: files of other tools as reports."""
