"""Tables as text, in every format."""

from __future__ import annotations

import csv
import io
import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplens.cli.printing import tables
from warplens.errors import UsageError

TABLE = pa.table(
    {
        "Time (%)": [99.95, 0.05],
        "Total Time (ns)": [1_234_567_890, 12],
        "Avg (ns)": [1_234.5678, 12.0],
        "PID": [100_000, None],
        "Range": [":a very long name that has no end at all", 'b|"c"\t\n,\x1b[31m'],
    }
)


def lines(form: str, table: pa.Table = TABLE, **options: object) -> list[str]:
    return list(tables.FORMATS[form](table, **options))


def test_a_table_for_reading() -> None:
    assert lines("table") == [
        "Time (%)  Total Time (ns)  Avg (ns)     PID  Range",
        "-" * 85,
        "   100.0    1,234,567,890   1,234.6  100000  :a very long name that has no end at all",
        '     0.1               12      12.0          b|"c"\\t\\n,\\x1b[31m',
    ]


def test_a_narrow_table_cuts_names_but_never_numbers() -> None:
    text = lines("table", width=64)
    assert max(map(len, text)) <= 64
    assert "…" in text[2]
    assert "1,234,567,890" in text[2]


def test_names_that_are_cut_stay_apart() -> None:
    """As the kernels of PyTorch are: what they differ in is far from both ends."""
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::{}<float>, std::array<char*, 3ul> >(int, T2, T3)"
    names = [
        kernel.format(name)
        for name in ("CUDAFunctor_add", "MulFunctor", "CUDAFunctorOnSelf_add", "tanh_kernel_cuda")
    ]
    names += ["gemm_" + "x" * 90 + "_128x64", "gemm_" + "x" * 90 + "_256x64", "gemm_" + "x" * 90]
    table = pa.table({"Time (ns)": range(7), "Name": names})
    for width in (30, 40, 60, 100):
        text = lines("table", table, width=width)
        assert max(map(len, text)) <= width
        assert len({line.split(maxsplit=1)[1] for line in text[2:]}) == 7, text
    assert "…" in text[2]
    assert tables.apart(["short", "a" * 20 + "b"], 9) == {"short": "short", "a" * 20 + "b": "aaaa…aaab"}
    assert all(len(cut) <= width for width in range(1, 60) for cut in tables.apart(names, width).values())


def test_a_very_narrow_table_folds_its_rows() -> None:
    text = lines("table", width=40)
    assert max(map(len, text)) <= 40
    joined = "\n".join(text)
    for number in ("100.0", "1,234,567,890", "1,234.6", "100000", "0.1", "12.0"):
        assert number in joined


def test_a_summary_leaves_the_least_telling_columns_out_where_it_is_narrow() -> None:
    table = pa.table(
        {
            "Total Time (ns)": [1_000_000],
            "Med (ns)": [1.0],
            "StdDev (ns)": [2.0],
            "Style": ["PushPop"],
            "Range": ["x" * 90],
        }
    )
    wide, gone = tables.fitted(table, 200)
    assert (wide.column_names, gone) == (table.column_names, [])
    narrow, gone = tables.fitted(table, 55)
    assert narrow.column_names == ["Total Time (ns)", "Style", "Range"]
    assert gone == ["StdDev (ns)", "Med (ns)"]
    assert max(map(len, lines("table", narrow, width=55))) <= 55
    assert tables.fitted(table, 0)[1] == []  # no terminal, no limit


def test_a_table_that_nobody_requested_has_no_empty_columns() -> None:
    table = pa.table(
        {
            "Thread": pa.array(["", None, ""]),
            "Waiting (ns)": [0, 0, 0],
            "PID": [0, 0, 0],
            "Process": ["", "train.py", ""],
            "Running (ns)": [0, 5, None],
            "StdDev (ns)": [1.0, 2.0, 3.0],
            "Where": pa.array([None, None, None], pa.string()),
        }
    )
    assert tables.telling(table).column_names == ["PID", "Process", "Running (ns)"]
    assert tables.telling(table.slice(0, 0)).column_names == table.column_names


def test_csv_is_read_back() -> None:
    rows = list(csv.reader(io.StringIO("\n".join(lines("csv")) + "\n")))
    assert rows[0] == TABLE.column_names
    assert rows[2] == ["0.1", "12", "12.0", "", 'b|"c"\t\n,\x1b[31m']


def test_tsv_has_one_line_per_row() -> None:
    assert lines("tsv")[2].split("\t") == ["0.1", "12", "12.0", "", 'b|"c"\\t\\n,\x1b[31m']


def test_json_is_valid_and_whole() -> None:
    assert json.loads("\n".join(lines("json"))) == TABLE.to_pylist()
    assert json.loads("\n".join(lines("json", TABLE.slice(0, 0)))) == []
    odd = pa.table({"x": [float("nan"), float("inf"), 1.5]})
    assert [row["x"] for row in json.loads("\n".join(lines("json", odd)))] == [None, None, 1.5]


def test_bytes_are_hexadecimal_and_nested_values_whole() -> None:
    table = pa.table(
        {"data": [b"\x00\xff", None], "values": [[1, 2], []], "at": pa.array(["a", None]).dictionary_encode()}
    )
    assert lines("csv", table) == ["data,values,at", '0x00ff,"[1, 2]",a', ",[],"]
    assert lines("tsv", table)[1] == "0x00ff\t[1, 2]\ta"
    assert json.loads("\n".join(lines("json", table)))[0] == {"data": "0x00ff", "values": [1, 2], "at": "a"}
    assert lines("table", table)[2].split() == ["0x00ff", "[1,", "2]", "a"]


def test_numbers_are_read_without_exponents_where_they_can_be() -> None:
    table = pa.table({"x": [594_234_112.25, 0.123456789, 1e300, 12_345.678]})
    assert [line.strip() for line in lines("table", table)[2:]] == [
        "594,234,112",
        "0.123457",
        "1e+300",
        "12,345.7",
    ]


def test_one_empty_column_still_has_lines() -> None:
    assert lines("csv", pa.table({"x": pa.array(["", None, "a"])})) == ["x", '""', '""', "a"]


def test_markdown_escapes_its_bars() -> None:
    text = lines("markdown")
    assert text[1] == "|--:|--:|--:|--:|---|"
    assert len(re.findall(r"(?<!\\)\|", text[3])) == 6


@pytest.mark.slow
@given(st.lists(st.tuples(st.text(), st.integers(-(2**62), 2**62)), max_size=8))
def test_any_text_survives_csv_and_json(rows: list[tuple[str, int]]) -> None:
    clean = [(text.encode("utf-8", "replace").decode(), number) for text, number in rows]
    table = pa.table(
        {
            "text": pa.array([text for text, _ in clean], pa.string()),
            "n": pa.array([n for _, n in clean], pa.int64()),
        }
    )
    assert json.loads("\n".join(lines("json", table))) == table.to_pylist()
    read = list(csv.reader(io.StringIO("\n".join(lines("csv", table)) + "\n", newline="")))
    assert read[1:] == [[text, str(number)] for text, number in clean]
    for form in ("table", "tsv", "markdown"):
        for width in (0, 40):
            assert all("\n" not in line for line in lines(form, table, width=width))


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("ns", "ns"),
        ("us", "us"),
        ("msec", "ms"),
        ("sec", "s"),
        ("n", "ns"),
        ("u", "us"),
        ("milli", "ms"),
        ("s", "s"),
    ],
)
def test_time_units_may_be_cut_short(text: str, unit: str) -> None:
    assert tables.time_unit(text) == unit


@pytest.mark.parametrize("text", ["", "hours", "x"])
def test_other_time_units_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no time unit"):
        tables.time_unit(text)


def test_a_unit_renames_and_divides() -> None:
    table = tables.in_unit(TABLE, "ms")
    assert table.column_names[1:3] == ["Total Time (ms)", "Avg (ms)"]
    assert table.column(1).to_pylist() == [1234.56789, 0.000012]
