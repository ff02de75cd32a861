"""The importer of Nsight Systems' SQLite files, a file for each group of tables."""
