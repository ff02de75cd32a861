"""Numbers of tracks and names as the native functions of the index take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

KEYS = 4  # numbers that say which track of a layer it is


def numbers(values: Any) -> npt.NDArray[np.uint32]:
    """Return numbers of tracks or names as the library takes them.

    Those that do not fit are left out.
    """
    wanted = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int64).ravel()
    return np.ascontiguousarray(wanted[(wanted >= 0) & (wanted < 1 << 32)], np.uint32)
