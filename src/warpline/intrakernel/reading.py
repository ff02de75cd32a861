"""The one door from the traced side to the desk: decoding needs NumPy, and is imported when something is decoded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from warpline.spool.intrakernel import Decoded


def decode(data: bytes | bytearray | memoryview, *, generation: int | None = None, layout: str = "warpline") -> Decoded:
    """Decode the bytes of a buffer; see `warpline.spool.intrakernel.decode`. ImportError names NumPy where it is absent."""
    from warpline.spool.intrakernel import decode as decode_bytes

    return decode_bytes(data, generation=generation, layout=layout)
