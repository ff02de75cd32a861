"""Output of rocprofv3 becomes a report: the same one from JSON and from CSV files."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import warplens
from tests.support.reports.rocprof_output import RocprofOutput
from warplens.errors import WarplensError
from warplens.importers.importing import format_of, import_file

T = 2_414_192_765_000_000
NAME = "void gemm<float>(float const*, int)"


def story() -> RocprofOutput:
    """A step: a copy, a kernel on each GPU, a wait, an all-reduce; marks around it."""
    output = RocprofOutput()
    output.call("roctxRangePushA:step", T, T + 900, kind="MARKER_CORE_API")
    output.call("roctxRangeStartA:epoch", T - 50, T + 990, kind="MARKER_CORE_API")
    output.call("roctxMarkA:loss is 3", T + 950, T + 950, kind="MARKER_CORE_API")
    output.call("roctxNameOsThread", T + 1, T + 2, kind="MARKER_NAME_API")
    copied = output.call("hipMemcpyAsync", T + 10, T + 60)
    output.copy("HOST_TO_DEVICE", T + 20, T + 55, size=4096, by=copied)
    first = output.call("hipLaunchKernel", T + 100, T + 110)
    output.kernel(NAME, T + 150, T + 400, by=first)
    second = output.call("hipLaunchKernel", T + 120, T + 130, tid=720)
    output.kernel("_Z5scalePfi.kd", T + 160, T + 300, by=second, gpu=1, stream=2)
    output.call("hsa_signal_wait_scacquire", T + 205, T + 395, kind="HSA_CORE_API")
    output.call("hipDeviceSynchronize", T + 200, T + 405)
    output.call("ncclAllReduce", T + 500, T + 600, kind="RCCL_API")
    output.allocate("ALLOCATE", T + 2, address=0x7F0000001000, size=1024)
    output.allocate("ALLOCATE", T + 4, address=0x7F0000002000, size=512)
    output.allocate("FREE", T + 800, address=0x7F0000001000)
    return output


def imported(source: Path, folder: Path) -> warplens.Report:
    assert format_of(source).id == "rocprofv3"
    import_file(source, folder / "run.warplens")
    return warplens.open(folder / "run.warplens")


TABLES = ("cuda_api", "kernels", "memcpys", "gpu_memory", "nvtx_ranges", "nvtx_marks", "threads", "streams")
# What CSV files do not say: the registers of other versions, the size of a copy.
UNKNOWN = {"memcpys": {"bytes"}}


def rows(report: warplens.Report, table: str) -> list[dict[str, object]]:
    known = report.table(table).to_pylist()
    return [{name: row[name] for name in row if name not in UNKNOWN.get(table, ())} for row in known]


def test_kernels_have_blocks_names_devices_and_their_call(tmp_path: Path) -> None:
    with imported(story().write_json(tmp_path), tmp_path) as report:
        gemm, scale = report.table("kernels").to_pylist()
        calls = {row["id"]: row for row in report.table("cuda_api").to_pylist()}
        devices = {row["device"]: row for row in report.table("devices").to_pylist()}
    assert (gemm["name"], gemm["demangled"], gemm["mangled"]) == ("gemm", NAME, None)
    assert (scale["name"], scale["demangled"]) == ("scale", "scale(float*, int)")
    assert [gemm[f"grid_{axis}"] for axis in "xyz"] == [4, 1, 1]
    assert [gemm[f"block_{axis}"] for axis in "xyz"] == [64, 1, 1]
    assert (gemm["dynamic_shared"], gemm["registers"]) == (512, 24)
    assert [(row["device"], row["stream"]) for row in (gemm, scale)] == [(0, 1), (1, 2)]
    assert [calls[row["api"]]["start"] for row in (gemm, scale)] == [T + 100, T + 120]
    assert devices[1]["name"] == "gfx942"
    assert devices[1]["multiprocessors"] == 304


def test_calls_markers_and_memory(tmp_path: Path) -> None:
    with imported(story().write_json(tmp_path), tmp_path) as report:
        calls = report.table("cuda_api").to_pylist()
        ranges = {row["message"]: row for row in report.table("nvtx_ranges").to_pylist()}
        marks = report.table("nvtx_marks").to_pylist()
        memory = report.table("gpu_memory").to_pylist()
        copy = report.table("memcpys").to_pylist()[0]
        told = {row["message"]: row["count"] for row in report.table("diagnostics").to_pylist()}
        process = report.table("processes").to_pylist()[0]
    kinds = {row["name"]: row["api"] for row in calls}
    assert kinds["hipLaunchKernel"] == "runtime"
    assert kinds["hsa_signal_wait_scacquire"] == "driver"
    assert "ncclAllReduce" not in kinds
    assert {name: (row["style"], row["domain"]) for name, row in ranges.items()} == {
        "epoch": ("StartEnd", None),
        "step": ("PushPop", None),
        "ncclAllReduce": ("PushPop", "RCCL"),
    }
    assert ranges["ncclAllReduce"]["parent"] == ranges["step"]["id"]
    assert {row["range"] for row in calls if row["start"] < T + 110} == {ranges["step"]["id"]}
    assert [row["message"] for row in marks] == ["loss is 3"]
    assert [(row["operation"], row["bytes"], row["total"]) for row in memory] == [
        ("allocate", 1024, 1024),
        ("allocate", 512, 1536),
        ("free", 1024, 512),
    ]
    assert (copy["kind"], copy["bytes"]) == ("Host-to-Device", 4096)
    assert told == {
        "calls that control or name markers have no place in a report": 1,
        "scratch_memory have no place in a report": 1,
    }
    assert (process["pid"], process["command"]) == (717, "./train -n 3")


@pytest.mark.parametrize("table", TABLES)
def test_csv_files_say_the_same_as_json(tmp_path: Path, table: str) -> None:
    output, folder = story(), tmp_path / "csv"
    output.write_csv(folder)
    (tmp_path / "json").mkdir()
    with imported(output.write_json(tmp_path), tmp_path / "json") as report:
        wanted = rows(report, table)
    assert wanted
    with imported(folder, tmp_path) as report:
        assert rows(report, table) == wanted


def test_csv_files_of_an_old_version_have_queues_for_streams(tmp_path: Path) -> None:
    with imported(story().write_csv(tmp_path / "csv", old=True), tmp_path) as report:
        kernels = report.table("kernels").to_pylist()
        told = [row["message"] for row in report.table("diagnostics").to_pylist()]
    assert [(row["stream"], row["device"], row["dynamic_shared"]) for row in kernels] == [
        (9, 0, 512),
        (9, 1, 512),
    ]
    assert any("copies have no size in CSV files" in text for text in told)


def test_one_csv_file_is_enough(tmp_path: Path) -> None:
    folder = story().write_csv(tmp_path / "csv")
    with imported(folder / "717_kernel_trace.csv", tmp_path) as report:
        assert report.sql("SELECT count(*) AS n, count(api) AS called FROM kernels").to_pylist() == [
            {"n": 2, "called": 0}
        ]


def test_files_of_two_processes_are_two_processes(tmp_path: Path) -> None:
    first, second = story(), story()
    second.pid = 900
    first.write_csv(tmp_path / "csv")
    second.write_csv(tmp_path / "csv")
    with imported(tmp_path / "csv", tmp_path) as report:
        counts = report.sql(
            "SELECT pid, count(*) AS n FROM kernels JOIN processes USING (process) GROUP BY pid ORDER BY pid"
        ).to_pylist()
    assert counts == [{"pid": 717, "n": 2}, {"pid": 900, "n": 2}]


def test_stats_answer_on_an_imported_trace(tmp_path: Path) -> None:
    with imported(story().write_json(tmp_path), tmp_path) as report:
        first = report.stats("cuda_gpu_kern_sum").to_pylist()[0]
        launch = report.stats("launch_latency").to_pylist()
    assert (first["Name"], first["Total Time (ns)"], first["Instances"]) == (NAME, 250, 1)
    assert launch


@pytest.mark.parametrize("name", ["kernel_trace", "hip_api_trace", "memory_copy_trace"])
def test_a_broken_number_is_named(tmp_path: Path, name: str) -> None:
    folder = story().write_csv(tmp_path / "csv")
    path = folder / f"717_{name}.csv"
    path.write_text(path.read_text().replace(str(T)[:9], "what", 1))
    with pytest.raises(WarplensError, match=f"{path.name} is broken"):
        import_file(folder, tmp_path / "run.warplens")


def test_a_file_that_was_cut_off_keeps_its_whole_lines(tmp_path: Path) -> None:
    folder = story().write_csv(tmp_path / "csv")
    path = folder / "717_kernel_trace.csv"
    path.write_text(path.read_text()[:-60])
    with imported(folder, tmp_path) as report:
        assert len(report.table("kernels")) == 1
        told = {row["message"]: row["count"] for row in report.table("diagnostics").to_pylist()}
    assert told["lines that are not records have no place in a report"] == 1


def test_counters_alone_are_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "717_counter_collection.csv"
    path.write_text('"Counter_Name","Counter_Value"\n"SQ_WAVES",3\n')
    with pytest.raises(WarplensError, match="only counters"):
        import_file(path, tmp_path / "run.warplens")


@pytest.mark.parametrize("seed", range(60))
def test_damaged_json_is_named_or_read(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = json.loads(json.dumps(story().as_json()))

    def damage(value: object) -> object:
        if isinstance(value, dict) and value:
            name = rng.choice(sorted(value))
            if rng.random() < 0.3:
                del value[name]
            else:
                value[name] = damage(value[name])
            return value
        if isinstance(value, list) and value:
            place = rng.randrange(len(value))
            value[place] = damage(value[place])
            return value
        return rng.choice([None, -1, "x", 1 << 70, [], {}, 0.5])

    path = tmp_path / "1_results.json"
    path.write_text(json.dumps(damage(data)))
    trouble: list[str] = []
    try:
        import_file(path, tmp_path / "run.warplens")
    except WarplensError as error:
        trouble.append(str(error))
    assert all(str(path) in text for text in trouble)
