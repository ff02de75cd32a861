"""PTX of the CuTe DSL recorder: what a warp does at kernel entry, per record and at the end.

Text only, so it needs no package.

Places are counted in 16-byte steps from the buffer's address: this takes one 32-bit register where a pointer takes two, and
the address itself stays a kernel parameter, which costs none. Units beyond the first 32 GiB record nothing. Lanes that record
nothing have a limit of 0, so one comparison says both who records and whether there is room. The cursor is not here: it is a
value of CuTe DSL, which carries it through loops and branches (`warplens.intrakernel.ptx` keeps it in separate registers,
for languages that cannot).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.model import intrakernel_layout as layout

if TYPE_CHECKING:
    from warplens.intrakernel.plan import Plan

TIMERS = {"globaltimer": "%globaltimer_lo", "clock": "%clock"}
STEP = 16  # bytes
# Of one instruction or two the assembler makes the same address in different ways: what is shorter before Hopper (whose natural
# clock is `clock`) is one instruction and two registers more from Hopper on.
_ADDRESS = {
    "globaltimer": f"mad.wide.u32 at, $2, {STEP}, $0;",
    "clock": f"mul.wide.u32 at, $2, {STEP}; add.s64 at, at, $0;",
}
_HEADS = layout.HEADER_BYTES + layout.UNIT_HEADER_BYTES
_ALIGNED = 1024  # rings come before a kernel's other shared memory, whose swizzled tiles keep their alignment
_AT = {name: at for name, _, at in layout.HEADER}
_UNIT_AT = {name: at for name, _, at in layout.UNIT}


def ring_bytes(plan: Plan) -> int:
    """Bytes of one warp's ring in shared memory."""
    return plan.ring_slots * layout.RING_RECORD_BYTES


def rings_bytes(plan: Plan) -> int:
    """Bytes of shared memory that the rings of a CTA take."""
    return -(-ring_bytes(plan) * plan.warps // _ALIGNED) * _ALIGNED


def _lines(*parts: str) -> str:
    lines = [line.strip() for part in parts for line in part.strip().splitlines()]
    return "{\n" + "\n".join(filter(None, lines)) + "\n}"


def _leave_unless(test: str) -> str:
    """Leave the prologue where `test` does not set p.

    Branches also bound how many registers it needs at a time.
    """
    return f"{test} @!p bra wl_out;"


def _linear(name: str, at: str, of: str) -> str:
    """Set `name` to the linear number of a place in three dimensions, x fastest."""
    return f"""
        mov.u32 {name}, %{at}.z; mov.u32 x, %{of}.y; mov.u32 y, %{at}.y; mad.lo.u32 {name}, {name}, x, y;
        mov.u32 x, %{of}.x; mov.u32 y, %{at}.x; mad.lo.u32 {name}, {name}, x, y;"""


def _place(plan: Plan) -> str:
    """Set warp and place (its number among the warps that record).

    Leave where it is none of them.
    """
    if not plan.warp_mask:
        chosen = f"{_leave_unless(f'setp.lt.u32 p, warp, {plan.warps};')} mov.u32 place, warp;"
    else:
        mask = plan.warp_mask & 0xFFFFFFFF  # no CTA has more than 32 warps
        chosen = f"""
            mov.u32 x, 1; shl.b32 x, x, warp; and.b32 y, x, {mask}; {_leave_unless("setp.ne.u32 p, y, 0;")}
            sub.u32 x, x, 1; and.b32 x, x, {mask}; popc.b32 place, x; {_leave_unless(f"setp.lt.u32 p, place, {plan.warps};")}"""
    return f"{_linear('warp', 'tid', 'ntid')} shr.u32 warp, warp, 5; {chosen}"


def _number(plan: Plan) -> str:
    """Set cta and number, the unit's.

    Leave where this CTA is not sampled or the buffer has no such unit.
    """
    every = plan.sample_blocks
    sampled = f"rem.u32 x, cta, {every}; {_leave_unless('setp.eq.u32 p, x, 0;')}" if every > 1 else ""
    if plan.mode == "claim":
        numbered = f"atom.global.add.u32 number, [buf+{layout.CLAIMED_AT}], 1;"
    else:
        divided = f"div.u32 x, cta, {every};" if every > 1 else "mov.u32 x, cta;"
        fits = _leave_unless(
            f"setp.lt.u32 p, x, {(1 << 32) // plan.warps - 1};"
        )  # numbers beyond 32 bits are no units
        numbered = f"{divided} {fits} mad.lo.u32 number, x, {plan.warps}, place;"
    return f"""
        {_linear("cta", "ctaid", "nctaid")} {sampled}
        {numbered} ld.global.u32 x, [buf+{_AT["units"]}]; {_leave_unless("setp.lt.u32 p, number, x;")}"""


LANE_0, ELECTED, EACH = "lane 0", "elected", "each"
_LEADS = {
    LANE_0: f"mov.u32 x, %laneid; {_leave_unless('setp.eq.u32 p, x, 0;')}",
    # The same lane is elected each time that the same lanes are there: it is also the one that a kernel's own elect_one picks.
    ELECTED: f"activemask.b32 x; {_leave_unless('elect.sync _|p, x;')}",
    EACH: "",
}


def begin(plan: Plan, *, leader: str = LANE_0) -> str:
    """Find the unit of this warp (or of each thread) and write the start of its header.

    `leader`: the recording lanes, a key of _LEADS.

    $0 u32 place of the first record, $1 u32 limit (place behind the last; 0: this thread does not record), $2 u32
    generation, $3 u64 buffer. With mode `smem` $1 is 1 where the thread records, $3 the ring's address in shared memory and
    $4 the buffer. A null pointer, and a buffer with another mode, clock or ring than this code is for: nothing is recorded.
    """
    smem = plan.mode == "smem"
    ring = (
        f"ld.global.u32 x, [buf+{_AT['slots']}]; {_leave_unless(f'setp.eq.u32 p, x, {plan.ring_slots};')}"
        if smem
        else ""
    )
    room = "mov.u32 room, 0;" if smem else f"ld.global.u32 room, [buf+{_AT['slots']}];"
    limit = "1" if smem else "room"
    return _lines(
        f"""
        .reg .pred p; .reg .u64 buf, unit, now; .reg .b32 magic, size, mode, clock;
        .reg .b32 gen, cta, warp, place, number, x, y, sm, limit, first, room;
        {f".shared .align {_ALIGNED} .b8 wl_rings[{rings_bytes(plan)}];" if smem else ""}
        mov.u64 buf, {"$4" if smem else "$3"}; mov.u32 limit, 0;
        {_LEADS[leader]}
        ld.global.v4.u32 {{magic, size, mode, clock}}, [buf]; setp.eq.u32 p, magic, {layout.MAGIC};
        setp.eq.and.u32 p, mode, {layout.MODES.index(plan.mode)}, p;
        {_leave_unless(f"setp.eq.and.u32 p, clock, {layout.CLOCKS.index(plan.clock)}, p;")}
        {ring}""",
        _place(plan),
        _number(plan),
        f"""
        ld.global.u32 y, [buf+{_AT["stride"]}]; ld.global.u32 gen, [buf+{_AT["generation"]}]; {room}
        {_leave_unless("setp.lt.u32 p, room, y;")}
        shr.u32 y, y, 4; mul.hi.u32 x, number, y; {_leave_unless("setp.eq.u32 p, x, 0;")}
        mad.lo.u32 first, number, y, {_HEADS // STEP}; add.u32 room, room, first; {_leave_unless("setp.gt.s32 p, room, 0;")}
        mad.wide.u32 unit, first, {STEP}, buf; sub.u64 unit, unit, {layout.UNIT_HEADER_BYTES}; mov.u32 limit, {limit};
        mov.u32 sm, %smid; st.global.v2.u32 [unit+{_UNIT_AT["warp"]}], {{warp, sm}};
        st.global.v2.u32 [unit+{_UNIT_AT["generation"]}], {{gen, cta}};
        mov.u32 x, {layout.UNIT_MAGIC}; mov.u32 y, {layout.VERSION}; st.global.v2.u32 [unit], {{x, y}}; mov.u64 now, 0;
        st.global.u64 [unit+{_UNIT_AT["sm_end"]}], now; st.global.u64 [unit+{_UNIT_AT["time_end"]}], now;
        st.global.u64 [unit+{_UNIT_AT["clock_end"]}], now;
        mov.u64 now, %globaltimer; st.global.u64 [unit+{_UNIT_AT["time_begin"]}], now;
        mov.u64 now, %clock64; st.global.u64 [unit+{_UNIT_AT["clock_begin"]}], now;
        wl_out:
        mov.u32 $0, first; mov.u32 $1, limit; mov.u32 $2, gen;
        {f"mov.u32 x, wl_rings; mad.lo.u32 $3, place, {ring_bytes(plan)}, x;" if smem else ""}""",
    )


def only_warp() -> str:
    """Keep a limit in one warp of the CTA. $0 u32 result, $1 u32 limit, $2 u32 number of the warp."""
    return _lines(f"""
        .reg .pred p; .reg .u32 warp, x, y;
        {_linear("warp", "tid", "ntid")} shr.u32 warp, warp, 5; setp.eq.u32 p, warp, $2; selp.u32 $0, $1, 0, p;""")


def timer(plan: Plan) -> str:
    """Read the low word of the buffer's clock. $0 u32 time."""
    return f"mov.u32 $0, {TIMERS[plan.clock]};"


def record(plan: Plan, *, mark: bool, payload: bool = True) -> str:
    """Read the clock and store one record, if the thread records and its slice has room.

    $0 u64 buffer, $1 u32 limit, $2 u32 place, $3 u32 word, then, if there are such, u32 payload and u32 t0 (none for a mark).
    A payload that is none is a register that nobody writes: that costs nothing, and nobody reads it.
    """
    fourth, t0 = "$4" if payload else "none", "t1" if mark else "$5" if payload else "$4"
    return _lines(f"""
        .reg .pred p; .reg .u32 t1, none; .reg .u64 at;
        mov.u32 t1, {TIMERS[plan.clock]}; setp.lt.u32 p, $2, $1; {_ADDRESS[plan.clock]}
        @p st.global.cs.v4.u32 [at], {{{t0}, t1, $3, {fourth}}};""")


def ring_record(plan: Plan, *, mark: bool) -> str:
    """Read the clock and store one short record over the oldest. $0 u32 ring, $1 u32 records, $2 u32 offset, $3 u32 word, $4 u32 t0."""
    t0, length = (
        ("t1", "mov.u32 d, $3;")
        if mark
        else ("$4", f"sub.u32 d, t1, $4; min.u32 d, d, {layout.RING_LONGEST}; or.b32 d, d, $3;")
    )
    return _lines(f"""
        .reg .pred p; .reg .u32 t1, d, at;
        mov.u32 t1, {TIMERS[plan.clock]}; {length}
        and.b32 at, $2, {ring_bytes(plan) - 1}; add.u32 at, at, $0; setp.ne.u32 p, $1, 0;
        @p st.shared.v2.u32 [at], {{{t0}, d}};""")


def _end() -> str:
    """Write the end of the header, of the unit whose records begin at `first`, where p is set."""
    at = {name: place - layout.UNIT_HEADER_BYTES for name, place in _UNIT_AT.items()}
    return f"""
        mad.wide.u32 unit, first, {STEP}, $0;
        mov.u32 sm, %smid; @p st.global.v2.u32 [unit+{at["sm_end"]}], {{sm, cursor}};
        mov.u64 now, %globaltimer; @p st.global.u64 [unit+{at["time_end"]}], now;
        mov.u64 now, %clock64; @p st.global.u64 [unit+{at["clock_end"]}], now;
        mov.u32 sm, {layout.VERSION | layout.ENDED << 16}; @p st.global.u32 [unit+{at["version"]}], sm;"""


def end(*, first_known: bool) -> str:
    """Write the end of the unit's header. $0 u64 buffer, $1 u32 limit, $2 u32 place, perhaps $3 u32 place of the first record."""
    # No register for it until here, nor for the buffer's address: this one is the same, which the assembler cannot know.
    read_slots = f"shr.u32 first, $1, 31; mad.wide.u32 unit, first, {STEP}, $0;"
    read_slots += (
        f" mov.u32 first, 0; @p ld.global.u32 first, [unit+{_AT['slots']}]; sub.u32 first, $1, first;"
    )
    return _lines(
        f"""
        .reg .pred p; .reg .u32 sm, cursor, first; .reg .u64 unit, now;
        setp.ne.u32 p, $1, 0; {"mov.u32 first, $3;" if first_known else read_slots} sub.u32 cursor, $2, first;""",
        _end(),
    )


def ring_end(plan: Plan) -> str:
    """Copy the ring into the slice, all lanes that are there together, and write the end of the header.

    $0 u64 buffer, $1 u32 records, $2 u32 offset, $3 u32 first, $4 u32 ring. Only lane 0 knows them: where it is absent
    nothing is copied.
    """
    return _lines(
        f"""
        .reg .pred p, more; .reg .u32 sm, cursor, first, lanes, lane, step, have, from, x, y; .reg .u64 unit, now, at;
        setp.ne.u32 p, $1, 0; shr.u32 cursor, $2, 3; selp.u32 have, cursor, 0, p; min.u32 have, have, {plan.ring_slots};
        mov.u32 first, $3; activemask.b32 lanes; bar.warp.sync lanes; and.b32 x, lanes, 1; setp.eq.u32 more, x, 0; @more bra wl_done;
        shfl.sync.idx.b32 have, have, 0, 31, lanes; shfl.sync.idx.b32 x, first, 0, 31, lanes; mad.wide.u32 unit, x, {STEP}, $0;
        shfl.sync.idx.b32 from, $4, 0, 31, lanes; mov.u32 x, %lanemask_lt; and.b32 x, x, lanes; popc.b32 lane, x; popc.b32 step, lanes;
        wl_next:
        setp.ge.u32 more, lane, have; @more bra wl_done;
        shl.b32 x, lane, 3; cvt.u64.u32 at, x; add.u64 at, at, unit; add.u32 x, x, from;
        ld.shared.v2.u32 {{x, y}}, [x]; st.global.cs.v2.u32 [at], {{x, y}};
        add.u32 lane, lane, step; bra wl_next;
        wl_done:""",
        _end(),
    )
