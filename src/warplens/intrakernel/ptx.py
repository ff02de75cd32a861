"""The recorder as PTX for languages with inline assembly.

Text with `$0`, `$1` … for operands, as LLVM writes them.

The cursor lives in registers of the kernel's own scope, declared once by `begin`. No language has to carry it through loops
and branches, and use without `begin`, or in a function that was not inlined, fails loudly in the assembler.

    %wl_at    address of the next record (64 bits; rings: of the unit's first one)
    %wl_left  records that still fit, negative once they do not; far below zero in lanes that are no leader or whose unit is
              not recorded, so one comparison decides everything. Counting down, it also tells how many there were.
    %wl_used, %wl_ring  (rings) bytes written so far, and where the ring is
    %wl_gen   the launch's number in its place in a record
    %wl_from  the buffer

Measured for Triton and Numba: with two cursors that only grow, a region is one or two instructions shorter than with an
offset that is added to a base, since unrolled copies share the additions.
"""

from __future__ import annotations

import zlib

from warplens.intrakernel.plan import WANTED_AT, Plan
from warplens.model import intrakernel_layout as layout

_TIMERS = {"globaltimer": "%globaltimer_lo", "clock": "%clock"}
_ALIGNED = 1024  # rings come before a kernel's other shared memory, whose swizzled tiles keep their alignment
_UNIT = layout.UNIT_HEADER_BYTES
_SLOTS_AT = 20
_NOBODY = -(1 << 30)  # where the count of a lane that does not record starts
_SOMEBODY = -(
    1 << 29
)  # counts above it are of lanes that do: they lose half a billion records before they fall below


def now(plan: Plan) -> str:
    """Read the clock: `$0`, 32 bits."""
    return f"mov.u32 $0, {_TIMERS[plan.clock]};"


def ring_bytes(plan: Plan) -> int:
    """Bytes of shared memory that the rings of a CTA take."""
    return -(-plan.ring_slots * layout.RING_RECORD_BYTES * plan.warps // _ALIGNED) * _ALIGNED


def begin(plan: Plan, pointer: str) -> str:
    """Claim a unit and write the start of its header.

    `pointer` is the 64-bit operand with the buffer's address.

    A unit for which the buffer has no slice says so there: the only atomic but for that of mode `claim`, and rare.
    """
    ring = plan.mode == "smem"
    if plan.warp_mask:
        chosen = f"shl.b64 m, 1, warp; and.b64 n, m, {plan.warp_mask:#x}; setp.ne.and.b64 p, n, 0, p;"
        chosen = f"setp.lt.and.u32 p, warp, 64, p; {chosen} sub.u64 m, m, 1; and.b64 m, m, {plan.warp_mask:#x}; popc.b64 place, m;"
    else:
        chosen = f"setp.lt.and.u32 p, warp, {plan.warps}, p; mov.u32 place, warp;"
    block = "mov.u32 block, cta;"
    if plan.sample_blocks > 1:
        block = f"div.u32 block, cta, {plan.sample_blocks}; rem.u32 x, cta, {plan.sample_blocks}; setp.eq.and.u32 p, x, 0, p;"
    if plan.mode == "claim":
        unit = f"mov.u32 unit, -1; @p atom.global.add.u32 unit, [{pointer}+{layout.CLAIMED_AT}], 1;"
    else:
        unit = f"mad.lo.u32 unit, block, {plan.warps}, place;"
    lines = [
        f".reg .s32 %wl_left; .reg .u64 %wl_at, %wl_from; mov.u64 %wl_from, {pointer};",
        ".reg .u32 %wl_gen;" if plan.generation else "",
        f".reg .u32 %wl_used, %wl_ring; .shared .align {_ALIGNED} .b8 wl_rings[{ring_bytes(plan)}];"
        if ring
        else "",
        "mov.u32 %wl_used, 0; mov.u32 %wl_ring, wl_rings;" if ring else "",
        "{ .reg .pred p, q; .reg .u32 x, y, cta, thread, warp, place, block, unit, units, slots, gen; .reg .u64 t, m, n, z;",
        _linear("cta", "%ctaid", "%nctaid"),
        _linear("thread", "%tid", "%ntid"),
        "shr.u32 warp, thread, 5; mov.u32 x, %laneid; setp.eq.u32 p, x, 0;",
        chosen,
        block,
        f"ld.global.v4.u32 {{units, slots, x, y}}, [{pointer}+16]; ld.global.u32 gen, [{pointer}+{layout.GENERATION_AT}];",
        unit,
        ""
        if plan.mode == "claim"
        else f"setp.ge.and.u32 q, unit, units, p; add.u32 y, unit, 1; mov.b64 z, {{y, gen}};"
        f" @q red.global.max.u64 [{pointer}+{WANTED_AT}], z;",
        "setp.lt.and.u32 p, unit, units, p;",
        f"mad.wide.u32 %wl_at, unit, x, {pointer}; add.u64 %wl_at, %wl_at, {layout.HEADER_BYTES + _UNIT};",
        f"selp.s32 %wl_left, slots, {_NOBODY}, p;",
        "shl.b32 %wl_gen, gen, 24;" if plan.generation else "",
        f"mad.lo.u32 %wl_ring, place, {plan.ring_slots * layout.RING_RECORD_BYTES}, %wl_ring;"
        if ring
        else "",
        # Pairs, and clocks and constants last: registers that only the begin needs would count for the whole kernel.
        f"@p st.global.v2.u32 [%wl_at+-{_UNIT - 8}], {{gen, cta}};",
        f"mov.u32 x, %smid; @p st.global.v2.u32 [%wl_at+-{_UNIT - 16}], {{warp, x}};",
        f"mov.u64 z, 0; @p st.global.u64 [%wl_at+-{_UNIT - 24}], z; @p st.global.u64 [%wl_at+-{_UNIT - 40}], z;",
        f"@p st.global.u64 [%wl_at+-{_UNIT - 56}], z; mov.u64 t, %globaltimer; @p st.global.u64 [%wl_at+-{_UNIT - 32}], t;",
        f"mov.u64 t, %clock64; @p st.global.u64 [%wl_at+-{_UNIT - 48}], t;",
        f"mov.u32 x, {layout.UNIT_MAGIC:#x}; mov.u32 y, {layout.VERSION}; @p st.global.v2.u32 [%wl_at+-{_UNIT}], {{x, y}}; }}",
    ]
    return " ".join(filter(None, lines))


def end(plan: Plan, word: int, start: str | None, payload: str | int | None) -> str:
    """Stamp the end and write one record.

    `start` and `payload` are 32-bit operands (or a constant); no start: a mark.
    """
    if plan.mode == "smem":
        return _ring_end(plan, word, start)
    # What several values are stored from are registers. One that nobody writes costs nothing, and nobody reads it.
    made = f"or.b32 w, %wl_gen, {word:#x};" if plan.generation else f"mov.u32 w, {word:#x};"
    made += f" mov.u32 v, {payload & 0xFFFFFFFF:#x};" if isinstance(payload, int) else ""
    kept = payload if isinstance(payload, str) else "v"
    return (
        f"{{ .reg .pred p; .reg .u32 t, v, w; mov.u32 t, {_TIMERS[plan.clock]}; add.s32 %wl_left, %wl_left, -1;"
        # Counted before the store: after it, the assembler would count in other registers and copy them back.
        f" setp.ge.s32 p, %wl_left, 0; add.u64 %wl_at, %wl_at, {layout.RECORD_BYTES}; {made}"
        f" @p st.global.cs.v4.u32 [%wl_at+-{layout.RECORD_BYTES}], {{{start or 't'}, t, w, {kept}}}; }}"
    )


def _ring_end(plan: Plan, word: int, start: str | None) -> str:
    mask = plan.ring_slots * layout.RING_RECORD_BYTES - 1
    length = (
        f"sub.u32 d, t, {start}; min.u32 d, d, {layout.RING_LONGEST:#x}; or.b32 d, d, {word:#x};"
        if start
        else f"mov.u32 d, {word:#x};"
    )
    # Of a %clock whose low word is read, and not stored as it is, the assembler makes a slow read per warp (S2UR).
    stamp = (
        "mov.u64 c, %clock64; cvt.u32.u64 t, c;"
        if plan.clock == "clock"
        else f"mov.u32 t, {_TIMERS[plan.clock]};"
    )
    return (
        f"{{ .reg .pred p; .reg .u32 t, d, a; .reg .u64 c; {stamp} {length} setp.gt.s32 p, %wl_left, 0;"
        f" and.b32 a, %wl_used, {mask:#x}; add.u32 a, a, %wl_ring; @p st.shared.v2.u32 [a], {{{start or 't'}, d}};"
        f" add.u32 %wl_used, %wl_used, {layout.RING_RECORD_BYTES}; }}"
    )


def finish(plan: Plan) -> str:
    """Write the end of the unit's header.

    A ring goes to the unit's slice first, copied by the whole warp.
    """
    if plan.mode == "smem":
        counted = f"{_FLUSH} shr.u32 n, %wl_used, 3;"
    else:
        # The address goes back to the unit by as many records as there were.
        counted = f"ld.global.u32 n, [%wl_from+{_SLOTS_AT}]; sub.s32 n, n, %wl_left;"
        counted += f" mul.wide.u32 a, n, {layout.RECORD_BYTES}; sub.u64 %wl_at, %wl_at, a;"
    return " ".join(
        (
            "{ .reg .pred p; .reg .u32 n, sm, f; .reg .u64 t, c, a;",
            f"mov.u64 t, %globaltimer; mov.u64 c, %clock64; mov.u32 sm, %smid; setp.gt.s32 p, %wl_left, {_SOMEBODY};",
            counted,
            f"mov.u32 f, {layout.VERSION | layout.ENDED << 16:#x}; @p st.global.v2.u32 [%wl_at+-{_UNIT - 24}], {{sm, n}};",
            f"@p st.global.u64 [%wl_at+-{_UNIT - 40}], t; @p st.global.u64 [%wl_at+-{_UNIT - 56}], c;",
            f"@p st.global.u32 [%wl_at+-{_UNIT - 4}], f; }}",
        )
    )


# Copies as much of the ring as was used, by those lanes of the warp that are here (all but those that left or never were): each
# knows its ring and unit, lane 0 whether it is recorded.
_FLUSH = (
    "{ .reg .pred q; .reg .s32 left; .reg .u32 i, step, most, have, v, w, a, mask; .reg .u64 b; activemask.b32 mask; bar.warp.sync mask;"
    " shfl.sync.idx.b32 left, %wl_left, 0, 31, mask; max.s32 left, left, 0; shl.b32 most, left, 3;"
    " shfl.sync.idx.b32 have, %wl_used, 0, 31, mask; min.u32 have, have, most; and.b32 i, mask, 1; mul.lo.u32 have, have, i;"
    " mov.u32 i, %lanemask_lt; and.b32 i, i, mask; popc.b32 i, i; shl.b32 i, i, 3; popc.b32 step, mask; shl.b32 step, step, 3;"
    " wl_copy: setp.ge.u32 q, i, have; @q bra wl_copied; add.u32 a, %wl_ring, i; ld.shared.v2.u32 {v, w}, [a];"
    " cvt.u64.u32 b, i; add.u64 b, b, %wl_at; st.global.v2.u32 [b], {v, w}; add.u32 i, i, step; bra wl_copy; wl_copied: }"
)


def _linear(name: str, at: str, of: str) -> str:
    """The linear number of a place in three dimensions, x fastest."""
    return (
        f"mov.u32 x, {of}.y; mov.u32 y, {at}.y; mov.u32 {name}, {at}.z; mad.lo.u32 {name}, {name}, x, y;"
        f" mov.u32 x, {of}.x; mov.u32 y, {at}.x; mad.lo.u32 {name}, {name}, x, y;"
    )


def _revision() -> int:
    """A number that changes with the text above, for compilers that keep what they compiled."""
    plans = (
        Plan(),
        Plan(generation=True, warp_mask=5, sample_blocks=2),
        Plan(mode="claim"),
        Plan(mode="smem", ring_slots=8),
        Plan(mode="smem", ring_slots=8, clock="clock"),
    )
    texts = [
        text
        for plan in plans
        for text in (now(plan), begin(plan, "$0"), end(plan, 1, "$0", None), finish(plan))
    ]
    return zlib.crc32("".join(texts).encode())


REVISION = _revision()
