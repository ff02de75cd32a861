"""Names of native code, from the symbol tables and line tables of its files."""
