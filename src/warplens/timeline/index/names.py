"""The names of an index: text, color, layer and count of each, and the search in their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.errors import UsageError
from warplens.timeline.index.layout import NAME, NONE


class IndexNames:
    """Names by number.

    A name is a text in a layer with a color; the same text may be there in several.
    """

    def __init__(
        self,
        records: npt.NDArray[Any],
        texts: pa.Array,
        layers: npt.NDArray[np.uint32],
        layer_names: Sequence[str],
    ) -> None:
        assert records.dtype == NAME
        self._records, self._texts, self._layers, self._layer_names = (
            records,
            texts,
            layers,
            tuple(layer_names),
        )

    def __len__(self) -> int:
        return len(self._records)

    @property
    def counts(self) -> npt.NDArray[np.uint64]:
        """The number of slices of each name."""
        numbers: npt.NDArray[np.uint64] = self._records["count"]
        return numbers

    @property
    def texts(self) -> npt.NDArray[np.uint32]:
        """The number of each name's text: names that differ in color alone have the same."""
        return np.ascontiguousarray(self._records["text"], np.uint32)

    def text(self, number: int) -> str:
        """Return the text; of a very long one, its beginning."""
        text = int(self._records["text"][number]) if 0 <= number < len(self) else len(self._texts)
        return str(self._texts[text].as_py()) if text < len(self._texts) else ""

    def color(self, number: int) -> int | None:
        """Return 0xRRGGBB, None if the program gave none."""
        argb = int(self._records["color"][number]) if 0 <= number < len(self) else NONE
        return None if argb == NONE else argb & 0xFFFFFF

    def layer(self, number: int) -> str:
        """Return the layer that the name is of."""
        text = int(self._records["text"][number]) if 0 <= number < len(self) else len(self._layers)
        at = int(self._layers[text]) if text < len(self._layers) else len(self._layer_names)
        return self._layer_names[at] if at < len(self._layer_names) else ""

    def count(self, number: int) -> int:
        """Return how many slices have it."""
        return int(self._records["count"][number]) if 0 <= number < len(self) else 0

    def search(self, text: str, regex: bool = False) -> npt.NDArray[np.uint32]:
        """Return the numbers of the names whose text has `text` in it, in capitals or not.

        Raises UsageError for a broken expression.
        """
        import pyarrow.compute as pc  # finishing a report needs the rest of this file, and not these 50 ms

        try:
            if regex:
                hits = pc.match_substring_regex(self._texts, pattern=text, ignore_case=True)
            else:
                hits = pc.match_substring(self._texts, pattern=text, ignore_case=True)
        except pa.ArrowInvalid as error:
            raise UsageError(
                f"{text!r} is not a regular expression: {str(error).splitlines()[0]}."
            ) from error
        matches = np.asarray(hits.to_numpy(zero_copy_only=False), bool)
        text_of = self._records["text"]
        known = text_of < len(matches)
        if not len(matches):
            return np.empty(0, np.uint32)
        return np.flatnonzero(matches[np.where(known, text_of, 0)] & known).astype(np.uint32)
