"""The example kernel in each language: what `python -m warpline.intrakernel.example` runs, by the language's `example`."""
