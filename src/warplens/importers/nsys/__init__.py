"""What the importer of Nsight Systems' SQLite files is made of, a file for each group of tables."""
