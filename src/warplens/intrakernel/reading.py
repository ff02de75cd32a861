"""The one door from the traced side to the reader.

Decoding needs NumPy, and is imported when something is decoded.
"""

from __future__ import annotations

from warplens.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from warplens.spool.kernels.decoded import Decoded


def decode(
    data: bytes | bytearray | memoryview, *, generation: int | None = None, layout: str = "warplens"
) -> Decoded:
    """Decode the bytes of a buffer; see `warplens.spool.intrakernel.decode`.

    ImportError names NumPy where it is absent.

    UsageError for a `Buffer`, which decodes itself.
    """
    if hasattr(data, "decode") and hasattr(data, "pointer"):
        raise UsageError(
            "decode() takes bytes, as buffer.read() returns them; a buffer decodes itself: buffer.decode()"
        )
    from warplens.spool.kernels.decoding import decode as decode_bytes

    return decode_bytes(data, generation=generation, layout=layout)
