"""Which variables make NVIDIA's libraries annotate themselves."""

from __future__ import annotations

import pytest

from warplens.cli.recording import chosen_traces
from warplens.recording.options.library_ranges import silenced, switched_on


@pytest.mark.parametrize(
    ("traces", "environment", "expected"),
    [
        (("cuda", "nvtx", "nccl"), {}, {}),
        (("cudnn",), {}, {"CUDNN_NVTX_LEVEL": "1"}),
        (("cusparse", "cusolver"), {}, {"CUSPARSE_NVTX_LEVEL": "1", "CUSOLVERDN_NVTX_LEVEL": "1"}),
        (
            ("cublas",),
            {},
            dict.fromkeys(("CUBLAS_NVTX_LEVEL", "CUBLASLT_NVTX_LEVEL", "CUBLASXT_NVTX_LEVEL"), "1"),
        ),
        (
            ("cublas-verbose", "cublas"),
            {},
            dict.fromkeys(("CUBLAS_NVTX_LEVEL", "CUBLASLT_NVTX_LEVEL", "CUBLASXT_NVTX_LEVEL"), "2"),
        ),
        (("cudnn", "cusparse"), {"CUDNN_NVTX_LEVEL": "3"}, {"CUSPARSE_NVTX_LEVEL": "1"}),
    ],
)
def test_the_libraries_are_told_what_the_user_has_not_told_them(
    traces: tuple[str, ...], environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert switched_on(traces, environment) == expected


def test_silenced_libraries_are_named() -> None:
    environment = {"NCCL_NVTX_DISABLE": "1", "CUDNN_NVTX_LEVEL": "0", "CUBLAS_NVTX_LEVEL": "1"}
    assert silenced(("nccl", "cudnn", "cublas"), environment) == [
        ("nccl", "NCCL_NVTX_DISABLE", "1"),
        ("cudnn", "CUDNN_NVTX_LEVEL", "0"),
    ]
    assert silenced(("nvtx", "cuda"), environment) == []
    assert silenced(("nccl",), {"NCCL_NVTX_DISABLE": "0"}) == []


def test_traces_of_libraries_include_nvtx() -> None:
    assert chosen_traces("cuda,cublas-verbose") == (("cuda", "cublas-verbose", "nvtx"), [])
    assert chosen_traces("nccl,nvtx") == (("nccl", "nvtx"), [])
