"""The checks of `warplens doctor`."""
