"""pprof's Profile as protobuf classes, from the numbers and types that its profile.proto gives."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
# Message: field -> number, type; `*` is repeated. Types with a capital are messages.
_MESSAGES = {
    "Profile": "sample_type=1 ValueType*, sample=2 Sample*, mapping=3 Mapping*, location=4 Location*, function=5 Function*, "
    "string_table=6 string*, drop_frames=7 int64, keep_frames=8 int64, time_nanos=9 int64, duration_nanos=10 int64, "
    "period_type=11 ValueType, period=12 int64, comment=13 int64*, default_sample_type=14 int64, doc_url=15 int64",
    "ValueType": "type=1 int64, unit=2 int64",
    "Sample": "location_id=1 uint64*, value=2 int64*, label=3 Label*",
    "Label": "key=1 int64, str=2 int64, num=3 int64, num_unit=4 int64",
    "Mapping": "id=1 uint64, memory_start=2 uint64, memory_limit=3 uint64, file_offset=4 uint64, filename=5 int64, build_id=6 int64, "
    "has_functions=7 bool, has_filenames=8 bool, has_line_numbers=9 bool, has_inline_frames=10 bool",
    "Location": "id=1 uint64, mapping_id=2 uint64, address=3 uint64, line=4 Line*, is_folded=5 bool",
    "Line": "function_id=1 uint64, line=2 int64, column=3 int64",
    "Function": "id=1 uint64, name=2 int64, system_name=3 int64, filename=4 int64, start_line=5 int64",
}
_TYPES = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}


def read(path: Path) -> Any:
    """Parse a file as `go tool pprof` would; unknown fields are an error."""
    from google.protobuf import descriptor_pool, message_factory, unknown_fields

    file = descriptor_pb2.FileDescriptorProto(
        name="profile.proto", package="perftools.profiles", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            called, _, rest = field.partition("=")
            number, kind = rest.split()
            about = {"name": called, "number": int(number), "label": 3 if kind.endswith("*") else 1}
            kind = kind.rstrip("*")
            if kind in _TYPES:
                message.field.add(**about, type=_TYPES[kind])
            else:
                message.field.add(**about, type=11, type_name=f".perftools.profiles.{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    profile: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))()
    profile.ParseFromString(gzip.decompress(path.read_bytes()))
    for each in (
        profile,
        *profile.sample,
        *profile.mapping,
        *profile.location,
        *profile.function,
        *profile.sample_type,
    ):
        assert not len(unknown_fields.UnknownFieldSet(each))
    return profile
