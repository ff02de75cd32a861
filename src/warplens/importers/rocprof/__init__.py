"""Output of rocprofv3: CSV files and JSON, brought into one form, then into tables."""
