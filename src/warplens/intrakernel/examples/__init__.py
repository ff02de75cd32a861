"""The example kernel in each language.

`python -m warplens.intrakernel.example` runs it, by the language's `example`.
"""
