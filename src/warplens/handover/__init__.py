"""Hands a recording over to the reader: its report, its spool, the process that still writes it.

Standard library only.
"""
