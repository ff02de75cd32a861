"""The Arrow types of the model, and the NumPy types that hold the same numbers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from warplens.storage import schema

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "warplens"


@pytest.mark.parametrize(
    "kind", [pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float64()], ids=str
)
def test_numbers_have_the_same_type_in_numpy(kind: pa.DataType) -> None:
    assert pa.from_numpy_dtype(schema.numpy_type(kind)) == kind
    assert np.zeros(1, schema.numpy_type(kind)).nbytes * 8 == kind.bit_width


def test_no_module_uses_to_pandas_dtype() -> None:
    """With pyarrow 25, the last for Python 3.10, that fails where pandas is not installed."""
    asking = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\.to_pandas_dtype\(", path.read_text(encoding="utf-8"))
    ]
    assert asking == []
