"""The SQLite export of Nsight Systems, as a report fills it."""
