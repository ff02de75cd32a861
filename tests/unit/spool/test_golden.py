"""A spool written down by hand, byte by byte: holds the reader to the format, not to our own writer."""

from __future__ import annotations

from pathlib import Path

from warplens.convert.nvtx.columns import slice_table
from warplens.convert.nvtx.domains import Domains
from warplens.spool.reader import SpoolFile

# Offset in the file -> bytes. All the rest is zero.
HEADER = {
    0x00: "57 4c 53 50 4f 4f 4c 31  03 00 00 00  00 20 00 00  00 10 00 00",  # WLSPOOL1, version 3, first chunk 8192, JSON at 4096
    0x18: "00 00 00 00  00 00 00 00",  # monotonic clock
    0x38: "00 60 00 00 00 00 00 00  00 60 00 00 00 00 00 00",  # reserved and handed out: 24576
    0x48: "e8 03 00 00 00 00 00 00",  # ended at 1000
    0x68: "02 00 00 00 00 00 00 00",  # two range records dropped (slot 1 is at 0x58 + 8 = 0x60, mark at 0x70)
}
STRINGS = {
    0x2000: "57 43 48 4b  02 00 00 00  00 10 00 00 00 00 00 00  ff ff ff ff  00 00 00 00",
    0x2040: "05 00 00 00  01 00 00 00  73 74 65 70 00 00 00 00",  # 1: step
    0x2050: "04 00 00 00  02 00 00 00  c3 a9 21 00 00 00 00 00",  # 2: é!
    0x2060: "01 00 00 00  03 00 00 00",  # 3: the empty string
    0x2068: "03 00 00 00  04 00 00 00  6c 69 00 00 00 00 00 00",  # 4: li
}
RECORDS = {
    0x3000: "57 43 48 4b  01 00 28 00  00 10 00 00 00 00 00 00  00 00 00 00  01 00 00 00",
    # a domain: 1 is called "li"
    0x3040: "07 00 01 00 04 00 00 00" + " 00" * 32,
    # a range "é!" in it from 20 to 30, red, payload -1 as int32, category 7
    0x3068: "01 0d 01 00 02 00 00 00  14 00 00 00 00 00 00 00  1e 00 00 00 00 00 00 00  ff ff ff ff 00 00 00 00  00 00 ff 00  07 00 00 00",
    # a range "step" around it from 10 to 40, payload 1.5
    0x3090: "01 03 00 00 01 00 00 00  0a 00 00 00 00 00 00 00  28 00 00 00 00 00 00 00  00 00 00 00 00 00 f8 3f  00 00 00 00  00 00 00 00",
    # a mark at 45 without a name
    0x30B8: "03 00 00 00 00 00 00 00  2d 00 00 00 00 00 00 00  2d 00 00 00 00 00 00 00" + " 00" * 16,
    # a start/end range from 5 to 50, begun on thread 3
    0x30E0: "02 00 00 00 03 00 00 00  05 00 00 00 00 00 00 00  32 00 00 00 00 00 00 00" + " 00" * 16,
    0x3108: "05 00 00 00 00 00 00 00" + " 00" * 16 + " 03 00 00 00" + " 00" * 12,
}
OPEN = {
    0x4000: "57 43 48 4b  03 00 28 00  00 10 00 00 00 00 00 00  00 00 00 00  02 00 00 00",
    # slot 0 is free; slot 1: a range "step" open since 60
    0x4068: "01 00 00 00 01 00 00 00  3c 00 00 00 00 00 00 00" + " 00" * 24,
}
EVENT = (
    '[["type","u1",0],["flags","u1",1],["domain","u2",2],["name","u4",4],["start","u8",8],["end","u8",16],'
    '["payload","u8",24],["color","u4",32],["category","u4",36]]'
)
META = (
    '[["type","u1",0],["flags","u1",1],["domain","u2",2],["name","u4",4],["start","u8",8],["id","u8",16],'
    '["thread","u4",24],["tid","u4",28],["category","u4",32]]'
)
ORIGIN = '[["type","u1",0],["id","u8",8],["parent","u8",16],["thread","u4",24],["task","u4",28]]'
OPERATION = '[["type","u1",0],["domain","u2",2],["start","u8",8],["object","u8",16],["value","u8",24],["action","u4",32]]'
FIELDS = {
    "range": EVENT,
    "start_end": EVENT,
    "mark": EVENT,
    "thread_switch": META,
    "origin": ORIGIN,
    "thread": META,
    "domain": META,
}
FIELDS |= {
    "category": META,
    "thread_name": META,
    "task_switch": META,
    "define": META,
    "sample": EVENT,
    "operation": OPERATION,
}
SLOT = '[["id","u8",40],["parent","u8",48],["thread","u4",56],["task","u4",60]]'
JSON = (
    '{"process":{"pid":7,"ppid":1,"host":"h","start_ns":4,"executable":"/x","command":["x"],"rank":"3"},"records":{'
    + ",".join(
        f'"{kind}":{{"id":{n},"size":40,"fields":{fields}}}'
        for n, (kind, fields) in enumerate(FIELDS.items(), 1)
    )
    + f'}},"slot":{{"size":64,"fields":{SLOT}}},"actions":{{}}}}'
)


def golden() -> bytes:
    data = bytearray(0x6000)
    for part in (HEADER, STRINGS, RECORDS, OPEN):
        for offset, text in part.items():
            raw = bytes.fromhex(text)
            data[offset : offset + len(raw)] = raw
    data[0x14:0x18] = len(JSON).to_bytes(4, "little")
    data[0x1000 : 0x1000 + len(JSON)] = JSON.encode()
    return bytes(data)


def test_every_field_is_where_the_format_says(tmp_path: Path) -> None:
    path = tmp_path / "h-7-1.spool"
    path.write_bytes(golden())
    with SpoolFile(path) as spool:
        assert (spool.process.pid, spool.process.rank, spool.process.local_rank) == (7, 3, None)
        assert spool.head.dropped[2] == 2
        events = spool.events
        assert events.plan(1000) == 1
        events.keys(1, 1 << 24, 1 << 32)
        events.set_strings(spool.strings)
        assert events.slice(0) == (4, 1, 0, 0)
        ranges = slice_table(
            "nvtx_ranges", events, spool.strings, Domains(spool.names, spool.strings)
        ).to_pylist()
        marks = slice_table(
            "nvtx_marks", events, spool.strings, Domains(spool.names, spool.strings)
        ).to_pylist()
        assert [note.code for note in spool.notes()] == ["dropped-records"]
    first, thread = 1 << 32, 1 << 24
    plain = {
        "process": 1,
        "thread": thread,
        "end_thread": None,
        "domain": None,
        "category": None,
        "category_id": None,
        "color": None,
        "payload_int": None,
        "payload_float": None,
        "style": "PushPop",
        "depth": 0,
        "parent": None,
        "task": None,
        "unfinished": False,
        "inherited": False,
        "clipped": False,
    }
    inner = {
        "domain": "li",
        "category": "7",
        "category_id": 7,
        "color": 0xFF0000,
        "payload_int": -1,
        "depth": 1,
        "parent": first + 1,
    }
    assert ranges == [
        {
            **plain,
            "id": first,
            "start": 5,
            "end": 50,
            "message": "",
            "style": "StartEnd",
            "thread": thread + 3,
            "end_thread": thread,
        },
        {**plain, "id": first + 1, "start": 10, "end": 40, "message": "step", "payload_float": 1.5},
        {**plain, "id": first + 2, "start": 20, "end": 30, "message": "é!", **inner},
        {**plain, "id": first + 3, "start": 60, "end": 1000, "message": "step", "unfinished": True},
    ]
    assert [(mark["start"], mark["message"], mark["thread"]) for mark in marks] == [(45, None, thread)]
