"""Starts a program with the agent in it, or records its own process. `warplens.capture()` marks what to capture of a program.

The package is callable because users write `with warplens.capture():`; what it does is in `marking`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # not typing's: importing that costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from warplens.capture.marking import Capture


class _CallablePackage(type(sys)):  # type: ignore[misc]
    """A module that can be called."""

    def __call__(self, function: Callable[..., Any] | None = None) -> Capture | Callable[..., Any]:
        from warplens.capture.marking import capture

        return capture() if function is None else capture(function)


sys.modules[__name__].__class__ = _CallablePackage
