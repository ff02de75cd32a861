"""The formats that can be imported, one file each."""
