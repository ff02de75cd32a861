"""A report on disk: manifests, Parquet files and their schemas."""
