"""Names of native code: what the symbol tables and line tables of its files say."""
