"""The columns `opcode` and `specialised` of `samples`: the names of instructions in the recorded interpreter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.convert.words import labelled
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

NOTICE = 22  # CpuNotice::opcode
_COUNT = 256
_GENERAL, _SPECIALISED = 1, 2  # OpcodeForm
_MOST = 1 << 14  # notices


class Opcodes:
    """The names of one process's opcodes. An opcode without a recorded name stays a number."""

    def __init__(self, names: dict[int, str], forms: npt.NDArray[np.int8]) -> None:
        self._names, self._forms = names, forms

    @classmethod
    def of(cls, notices: WideRecords | None, strings: Strings) -> Opcodes:
        """Return the names that the notices of a process say."""
        names = {opcode: str(opcode) for opcode in range(_COUNT)}
        forms = np.zeros(_COUNT, np.int8)
        if notices is not None:
            own = np.flatnonzero(notices.column("notice") == NOTICE)[:_MOST]
            for row in notices.rows(notices.offsets()[own]):
                form, opcode = divmod(int(row["value"]), _COUNT)
                name = strings.get(int(row["name"]))
                if name:
                    names[opcode] = name
                    forms[opcode] = form if form in (_GENERAL, _SPECIALISED) else 0
        return cls(names, forms)

    def columns(self, opcode: npt.NDArray[np.uint32], absent: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
        """Return name and form of each.

        Null where `absent`, and the form where there is no choice of one.
        """
        absent = absent | (opcode >= _COUNT)
        code = np.where(absent, 0, opcode)
        form = self._forms[code]
        return {
            "opcode": labelled(code, self._names, absent),
            "specialised": pa.array(form == _SPECIALISED, mask=absent | (form == 0)),
        }
