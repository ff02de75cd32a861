"""Reports on disk: finish a spool into Parquet, open what is there."""
