"""The example kernel in each language: what `python -m warplens.intrakernel.example` runs, by the language's `example`."""
