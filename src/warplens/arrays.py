"""The NumPy array types that annotations name: times, ids, row numbers and sums are `Int64Array`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
